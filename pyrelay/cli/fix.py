"""Applying fixes to the user's files, with everything else in them untouched.

A fix replaces a span. Where the span is an expression, libcst puts the new one into its lossless
tree and adds parentheses if the text would otherwise read differently; other spans (insertions) are
spliced. Cases and annotations are added in the tree. A fix after which the file does not parse is
not applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tokenize import open as open_source
from typing import Final, TypeVar

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from ..diagnostics.diagnostic import CaseFix, Diagnostic, Fix, ParameterFix
from ..files import replace_file

_CLASS: Final = re.compile(r"\b([A-Za-z_]\w*)\(")
"""A class in a pattern: its name stands before a parenthesis."""

_Node = TypeVar("_Node", bound=cst.CSTNode)


def apply_fixes(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Write the fixes of diagnostics into their files; return the diagnostics that are fixed."""
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
        text = _with_imports(text, sorted(names))
    if done:
        replace_file(path, text.replace("\n", newline).encode(encoding))
    return done


def replaced(text: str, fix: Fix | CaseFix | ParameterFix) -> str | None:
    """Return the text with one fix applied, None if it would not parse."""
    match fix:
        case CaseFix():
            return _with_cases(text, fix)
        case ParameterFix():
            return _with_annotation(text, fix)
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


def _bytes_before(text: str, fix: CaseFix | ParameterFix) -> int:
    return len(text[: fix.span.start].encode())


def _node_at(wrapper: MetadataWrapper, kind: type[_Node], start: int) -> _Node | None:
    for node, span in wrapper.resolve(ByteSpanPositionProvider).items():
        if isinstance(node, kind) and span.start == start:
            return node
    return None


def _with_annotation(text: str, fix: ParameterFix) -> str | None:
    """Return the text with the annotation of a parameter; None where there is none to annotate."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    param = _node_at(wrapper, cst.Param, _bytes_before(text, fix))
    if param is None or param.annotation is not None:
        return None
    annotation = cst.Annotation(cst.parse_expression(fix.annotation))
    equal = param.equal if param.default is None else cst.AssignEqual()
    changed = param.with_changes(annotation=annotation, equal=equal)
    tree = wrapper.module.deep_replace(param, changed)
    assert isinstance(tree, cst.Module)
    return tree.code


def _with_imports(text: str, names: Iterable[str]) -> str:
    """Return the text with names of pyrelay imported."""
    context = CodemodContext()
    for name in names:
        AddImportsVisitor.add_needed_import(context, "pyrelay", name)
    return AddImportsVisitor(context).transform_module(cst.parse_module(text)).code


def _with_cases(text: str, fix: CaseFix) -> str | None:
    """Return the text with cases at the end of a `match`, which raise; None where the match is not
    found, or a class that the cases name is not."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    match = _node_at(wrapper, cst.Match, _bytes_before(text, fix))
    if match is None:
        return None
    home = _home(match)
    if not home and not _knows(wrapper.module, fix.patterns):
        return None
    patterns = [_CLASS.sub(rf"{home}\1(", p) for p in fix.patterns]
    cases = [_case(wrapper.module, *pair) for pair in zip(patterns, fix.patterns, strict=True)]
    changed = match.with_changes(cases=[*match.cases, *cases])
    tree = wrapper.module.deep_replace(match, changed)
    assert isinstance(tree, cst.Module)
    return tree.code


def _case(module: cst.Module, pattern: str, message: str) -> cst.MatchCase:
    message = "no case for this value" if message == "_" else message
    quoted = repr(message) if '"' in message else f'"{message}"'
    lines = (
        "match _:",
        f"{module.default_indent}case {pattern}:",
        f"{module.default_indent * 2}raise NotImplementedError({quoted})",
    )
    statement = cst.parse_statement("\n".join(lines) + "\n", module.config_for_parsing)
    assert isinstance(statement, cst.Match)
    return statement.cases[0]


def _home(match: cst.Match) -> str:
    """Return the prefix of the names of classes in the existing cases, such as `shapes.`."""
    for node in _inside(match.cases):
        if isinstance(node, cst.MatchClass) and isinstance(node.cls, cst.Attribute):
            return f"{cst.Module([]).code_for_node(node.cls.value)}."
    return ""


def _inside(nodes: Sequence[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    pending = list(nodes)
    while pending:
        node = pending.pop(0)
        yield node
        pending += node.children


def _knows(module: cst.Module, patterns: Sequence[str]) -> bool:
    """Return whether a file names all classes in patterns: it defines or imports them."""
    wanted = {name for pattern in patterns for name in _CLASS.findall(pattern)}
    return not wanted or wanted <= _named(module)


def _named(module: cst.Module) -> set[str]:
    found: set[str] = set()
    for node in _inside([module]):
        match node:
            case cst.ClassDef(name=cst.Name(value=name)):
                found.add(name)
            case cst.ImportAlias(asname=cst.AsName(name=cst.Name(value=name))):
                found.add(name)
            case cst.ImportAlias(name=cst.Name(value=name), asname=None):
                found.add(name)
            case _:
                pass
    return found
