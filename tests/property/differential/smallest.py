"""Smaller programs that fail in the same way."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from tests.property.differential.programs import Drawn

TRIES: Final = 300
LITERALS: Final = ("1", "0.5", "True")


def smallest(drawn: Drawn, fails: Callable[[Drawn], bool], *, whole: bool) -> Drawn:
    """Return a program without whatever the failure does not need.

    `whole` leaves expressions as they are: a smaller one might be refused for another reason.
    """
    for call in drawn.calls:
        alone = replace(drawn, calls=(call,))
        if fails(alone):
            drawn = alone
            break
    tries = TRIES
    changed = True
    while changed:
        changed = False
        for source in _smaller(drawn.source, whole):
            tries -= 1
            if tries < 0:
                return drawn
            made = replace(drawn, source=source)
            if len(source) < len(drawn.source) and fails(made):
                drawn, changed = made, True
                break
    return drawn


def _smaller(source: str, whole: bool) -> Iterator[str]:
    """Yield programs with one part less, large parts first."""
    tree = ast.parse(source)
    count = sum(1 for _ in ast.walk(tree))
    for number in range(count):
        edits = (_dropped, _opened) if whole else (_dropped, _removed, _opened, _simplified)
        for edit in edits:
            for made in edit(tree, number):
                with suppress(ValueError):  # some trees are no text: a number among a text's parts
                    yield ast.unparse(ast.fix_missing_locations(made)) + "\n"


def _copied(tree: ast.Module, number: int) -> tuple[ast.Module, ast.AST]:
    made = copy.deepcopy(tree)
    for place, node in enumerate(ast.walk(made)):
        if place == number:
            return made, node
    raise IndexError(number)


def _dropped(tree: ast.Module, number: int) -> Iterator[ast.Module]:
    """Yield a tree without a statement or a case of its node."""
    yield from _without(tree, number, ("body", "orelse", "cases"))


def _removed(tree: ast.Module, number: int) -> Iterator[ast.Module]:
    """Yield a tree without an operand or an element of its node."""
    yield from _without(tree, number, ("elts", "args", "values"))


def _without(tree: ast.Module, number: int, names: Sequence[str]) -> Iterator[ast.Module]:
    _, node = _copied(tree, number)
    if isinstance(node, ast.arguments) or isinstance(getattr(node, "ctx", None), ast.Store):
        return
    for name in names:
        items = getattr(node, name, None)
        for place in range(len(items) if isinstance(items, list) else 0):
            made, inner = _copied(tree, number)
            del getattr(inner, name)[place]
            if name not in ("body", "cases") or getattr(inner, name):
                yield made


def _opened(tree: ast.Module, number: int) -> Iterator[ast.Module]:
    """Yield a tree with a compound statement of its node replaced by the statements in it."""
    _, node = _copied(tree, number)
    for name in ("body", "orelse"):
        statements = getattr(node, name, None)
        for place, statement in enumerate(statements if isinstance(statements, list) else ()):
            for part in ("body", "orelse"):
                inner = getattr(statement, part, None)
                if isinstance(statement, ast.If | ast.For | ast.While) and inner:
                    made, parent = _copied(tree, number)
                    body = getattr(parent, name)
                    body[place : place + 1] = getattr(body[place], part)
                    yield made


def _simplified(tree: ast.Module, number: int) -> Iterator[ast.Module]:
    """Yield a tree with an expression of its node replaced by a part of it, or by a literal."""
    _, node = _copied(tree, number)
    for field, value in ast.iter_fields(node):
        for place, inner in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(inner, ast.expr) or isinstance(inner, ast.Constant):
                continue
            if field in ("annotation", "returns", "decorator_list", "func", "targets", "target"):
                continue
            parts = [p for p in ast.iter_child_nodes(inner) if isinstance(p, ast.expr)]
            literals = [ast.parse(t, mode="eval").body for t in LITERALS]
            for part in (*parts, *literals):
                made, parent = _copied(tree, number)
                if isinstance(value, list):
                    getattr(parent, field)[place] = part
                else:
                    setattr(parent, field, part)
                yield made
