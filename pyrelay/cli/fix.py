"""Applying fixes to the user's files, with everything else in them untouched.

A fix replaces a span. Where the span is an expression, libcst puts the new one into its lossless
tree and adds parentheses if the text would otherwise read differently; other spans (insertions) are
spliced. Cases and annotations are added in the tree. A fix after which the file does not parse is
not applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tokenize import open as open_source

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from ..diagnostics.diagnostic import CaseFix, Diagnostic, Fix, ParameterFix
from .add_annotations import with_annotation, with_imports
from .add_cases import with_cases


def apply_fixes(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Write the fixes of diagnostics into their files and give the diagnostics that are fixed."""
    by_file: dict[str, list[Diagnostic]] = {}
    for d in diagnostics:
        if d.fix is not None:
            by_file.setdefault(d.fix.span.file.name, []).append(d)
    fixed: list[Diagnostic] = []
    for name, group in by_file.items():
        fixed += _fix_file(Path(name), group)
    return fixed


def _fix_file(path: Path, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Fix one file, unless it is not, or no longer, the text that was checked."""
    if not path.is_file():
        return []
    with open_source(str(path)) as file:
        encoding = file.encoding
        text = file.read()
        newline = file.newlines if isinstance(file.newlines, str) else "\n"
    known = [(d, d.fix) for d in diagnostics if d.fix is not None and d.fix.span.file.text == text]
    done: list[Diagnostic] = []
    end = len(text)
    # From the end, so that earlier spans stay right; of two that overlap the later one wins.
    for d, fix in sorted(known, key=lambda pair: pair[1].span.start, reverse=True):
        if fix.span.end > end:
            continue
        changed = replaced(text, fix)
        if changed is not None:
            text, end = changed, fix.span.start
            done.append(d)
    names = {n for d in done if isinstance(d.fix, ParameterFix) for n in d.fix.imports}
    if names:
        text = with_imports(text, sorted(names))
    if done:
        path.write_bytes(text.replace("\n", newline).encode(encoding))
    return done


def replaced(text: str, fix: Fix | CaseFix | ParameterFix) -> str | None:
    """Return the text with one fix applied, None if it would not parse."""
    match fix:
        case CaseFix():
            return with_cases(text, fix)
        case ParameterFix():
            return with_annotation(text, fix)
        case Fix():
            return _with_replacement(text, fix)


def _with_replacement(text: str, fix: Fix) -> str | None:
    start, end = fix.span.start, fix.span.end
    found = _expression(text, start, end)
    if found is None:
        return _parsing(text[:start] + fix.replacement + text[end:])
    wrapper, node = found
    try:
        new = cst.parse_expression(fix.replacement)
    except cst.ParserSyntaxError:
        return _parsing(text[:start] + fix.replacement + text[end:])
    enclosed = new.with_changes(
        lpar=[cst.LeftParen(), *new.lpar], rpar=[*new.rpar, cst.RightParen()]
    )
    for candidate in _with_parentheses_of(node, (new, enclosed)):
        tree = wrapper.module.deep_replace(node, candidate)
        if isinstance(tree, cst.Module) and _reads_as(tree):
            return tree.code
    return None


def _with_parentheses_of(
    old: cst.BaseExpression, candidates: Iterable[cst.BaseExpression]
) -> Iterable[cst.BaseExpression]:
    """Return the candidates inside the parentheses that the old expression has outside its span."""
    for new in candidates:
        yield new.with_changes(lpar=[*old.lpar, *new.lpar], rpar=[*new.rpar, *old.rpar])


def _expression(
    text: str, start: int, end: int
) -> tuple[MetadataWrapper, cst.BaseExpression] | None:
    """Return the expression that a span covers exactly, the outermost of several."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    first, length = len(text[:start].encode()), len(text[start:end].encode())
    for node, span in wrapper.resolve(ByteSpanPositionProvider).items():
        if isinstance(node, cst.BaseExpression) and (span.start, span.length) == (first, length):
            return wrapper, node
    return None


def _reads_as(tree: cst.Module) -> bool:
    """Return whether the text of a tree parses to that very tree."""
    text = _parsing(tree.code)
    return text is not None and cst.parse_module(text).deep_equals(tree)


def _parsing(text: str) -> str | None:
    try:
        cst.parse_module(text)
    except cst.ParserSyntaxError:
        return None
    return text
