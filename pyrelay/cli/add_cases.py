"""Adding cases to a `match` of the user's, in libcst's lossless tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from ..diagnostics.diagnostic import CaseFix

_CLASS: Final = re.compile(r"\b([A-Za-z_]\w*)\(")
"""A class in a pattern: its name stands before a parenthesis."""


def with_cases(text: str, fix: CaseFix) -> str | None:
    """Return the text with cases at the end of a `match`, which raise; None where the match is not
    found, or a class that the cases name is not."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    match = _match_at(wrapper, len(text[: fix.span.start].encode()))
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


def _match_at(wrapper: MetadataWrapper, start: int) -> cst.Match | None:
    for node, span in wrapper.resolve(ByteSpanPositionProvider).items():
        if isinstance(node, cst.Match) and span.start == start:
            return node
    return None


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
    """Return what stands before the names of classes in the cases there are, such as `shapes.`."""
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
