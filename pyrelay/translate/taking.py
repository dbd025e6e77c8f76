"""Calls `xs.pop()` brought into statements of their own.

`xs.pop()` gives a value and changes the list, and only a statement changes what a name stands for.
So `f(stack.pop(), stack.pop())` becomes `popped = stack.pop()`, `popped_1 = stack.pop()` and
`f(popped, popped_1)`. What Python evaluates before a call of `pop` is named as well, so that the
order stays the same. A call that Python makes only sometimes, such as that in `p and xs.pop()`,
stays where it is and is refused when it is translated.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, TypeVar, final

from ..ir.traverse import Steps, run


def without_inner_pops(function: ast.FunctionDef) -> ast.FunctionDef:
    """Return a function in which each call `xs.pop()` is the right side of an assignment to a name,
    or a statement; the function itself if there is no other call."""
    if not any(map(is_pop, ast.walk(function))):
        return function
    names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    return _Rewriter(names).function(function)


def is_pop(node: ast.AST) -> bool:
    """Tell whether a node is a call of `pop` on a name."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="pop")):
            return True
        case _:
            return False


Part: TypeAlias = "tuple[str, int | None, ast.expr]"
"""A part of an expression: the field of its node, the place in it if it is a list, and itself."""

_HELD: Final = ("value", "test", "iter", "subject")
"""The fields of statements that hold the expression which is evaluated first, and once."""


@final
class _Rewriter:
    """Rewrites the bodies of one function and of those inside it."""

    def __init__(self, names: set[str]) -> None:
        self._names: Final = names
        self._pending: list[ast.stmt] = []

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Return a function with its body rewritten, nested functions included."""
        return _with(node, body=list(self._block(node.body)))

    def _block(self, body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        for stmt in body:
            rewritten = self._statement(stmt)
            before, self._pending = self._pending, []
            yield from before
            yield rewritten

    def _statement(self, stmt: ast.stmt) -> ast.stmt:
        stmt = self._first_expression(stmt)
        before, self._pending = self._pending, []
        changed = {
            name: list(self._block(body))
            for name in ("body", "orelse")
            if (body := getattr(stmt, name, None))
        }
        if isinstance(stmt, ast.Match):
            cases = [_with(c, body=list(self._block(c.body))) for c in stmt.cases]
            stmt = _with(stmt, cases=cases)
        self._pending = before
        return _with(stmt, **changed) if changed else stmt

    def _first_expression(self, stmt: ast.stmt) -> ast.stmt:
        if isinstance(stmt, ast.While):
            return stmt  # evaluated before every round
        for name in _HELD:
            held = getattr(stmt, name, None)
            if not isinstance(held, ast.expr) or not _has_pop(held):
                continue
            stands = isinstance(stmt, ast.Expr) or (
                isinstance(stmt, ast.Assign)
                and len(stmt.targets) == 1
                and isinstance(stmt.targets[0], ast.Name)
            )
            new = run(self._inside(held) if stands and is_pop(held) else self._taken(held))
            return _with(stmt, **{name: new})
        return stmt

    # Expressions.

    def _taken(self, node: ast.expr) -> Steps[ast.expr]:
        """Return an expression without calls of `pop`, which stand in statements before it."""
        inside = yield self._inside(node)
        return self._named(inside, "popped") if is_pop(node) else inside

    def _inside(self, node: ast.expr) -> Steps[ast.expr]:
        """Return an expression with the calls taken out of its parts."""
        parts = _parts(node)
        places = [i for i, (_, _, part) in enumerate(parts) if _has_pop(part)]
        if not places:
            return node
        single: dict[str, ast.expr] = {}
        several: dict[str, list[ast.expr]] = {}
        for place, (field, index, part) in enumerate(parts[: places[-1] + 1]):
            made = (yield self._taken(part)) if _has_pop(part) else part
            if place < places[-1] and not _is_fixed(made):
                made = self._named(made, "before")
            if index is None:
                single[field] = made
            else:
                several.setdefault(field, list(getattr(node, field)))[index] = made
        return _with(node, **single, **several)

    def _named(self, node: ast.expr, hint: str) -> ast.expr:
        """Return a new name for the value of an expression, which a statement before gives it."""
        name, number = hint, 0
        while name in self._names:
            number += 1
            name = f"{hint}_{number}"
        self._names.add(name)
        target = ast.copy_location(ast.Name(name, ast.Store()), node)
        self._pending.append(ast.copy_location(ast.Assign([target], node), node))
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def _has_pop(node: ast.AST) -> bool:
    """Tell whether Python calls `pop` whenever it evaluates an expression."""
    pending = [node]
    while pending:
        current = pending.pop()
        if is_pop(current):
            return True
        if isinstance(current, ast.expr):
            pending += (part for _, _, part in _parts(current))
    return False


def _parts(node: ast.expr) -> list[Part]:
    """Return the parts of an expression that are always evaluated, in order, with their places."""
    match node:
        case ast.Call(func=func, args=args):
            given: list[Part] = [("args", i, a) for i, a in enumerate(args)]
            is_part = isinstance(func, ast.Attribute) and not _is_fixed(func)
            return [("func", None, func), *given] if is_part else given
        case ast.BinOp(left=left, right=right):
            return [("left", None, left), ("right", None, right)]
        case ast.Compare(left=left, comparators=others):
            return [("left", None, left), ("comparators", 0, others[0])]
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return [("elts", i, e) for i, e in enumerate(elts)]
        case ast.BoolOp(values=values):
            return [("values", 0, values[0])]
        case ast.Subscript(value=value, slice=index):
            return [("value", None, value), ("slice", None, index)]
        case ast.IfExp(test=test):
            return [("test", None, test)]
        case ast.UnaryOp(operand=operand):
            return [("operand", None, operand)]
        case ast.Attribute(value=value) | ast.Starred(value=value):
            return [("value", None, value)]
        case _:
            return []


def _is_fixed(node: ast.expr) -> bool:
    """Tell whether evaluating an expression before or after a call of `pop` gives the same. A name
    is the list itself in Python, which the call then has changed."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Constant | ast.Lambda | ast.Name)


Node = TypeVar("Node", bound=ast.AST)


def _with(node: Node, **fields: object) -> Node:
    """Return a copy of a node with other fields, at the same place."""
    kept = {name: getattr(node, name, None) for name in node._fields}
    made = type(node)(**{**kept, **fields})
    return ast.copy_location(made, node) if hasattr(node, "lineno") else made
