"""Comparisons of elements: `sorted(xs, key=f, reverse=True)`, `min(xs, key=f)`, `max(xs,
key=f)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Literal

from ...diagnostics.catalogue.signatures import WrongArguments
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.constant import placeholder
from ...ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Var
from ...ir.traverse import Steps
from ...operators.host.loop import is_before
from ...operators.host.sizes import dim_size
from ...operators.primitive.compare import less
from ...prelude.library import qualified
from ..blocks.iteration import as_function
from ..names.atoms import again, atom
from ..names.static import static_value
from ..program.context import Context
from ..source.syntax import is_none
from .lists import as_list

Extreme = Literal["min", "max"]


def sorted_call(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `sorted(xs, key=f, reverse=True)`; elements of equal keys keep their order."""
    if len(node.args) != 1 or any(k.arg not in ("key", "reverse") for k in node.keywords):
        text = "sorted(iterable, *, key=None, reverse=False)"
        return _refused(cx, node, "sorted", "does not take these arguments", text)
    return (yield sorted_list(cx, node, (yield as_list(cx, node.args[0]))))


def sorted_list(cx: Context, node: ast.Call, items: Expr) -> Steps[Expr]:
    """Return a list sorted as the keyword arguments of a call say."""
    span, code = cx.span(node), BlockBuilder()
    given = {k.arg: k.value for k in node.keywords if k.arg is not None}
    items = atom(items, "items", code.bind)
    key = yield _key(cx, given, span, code)
    known = static_value(cx, given["reverse"]) if "reverse" in given else None
    if "reverse" in given and known is None:
        backwards = atom((yield cx.expression(given["reverse"])), "reverse", code.bind)
        up, down = (_sorted(items, key, span, is_reversed=r) for r in (False, True))
        return code.close(If(backwards, down, up, span=span))
    is_reversed = known is not None and bool(known.value)
    return code.close(_sorted(items, key, span, is_reversed=is_reversed))


def _sorted(items: Expr, key: Expr | None, span: Span, *, is_reversed: bool) -> Expr:
    items = _prelude("rev", span, again(items)) if is_reversed else again(items)
    if key is None:
        found = _prelude("sorted", span, _before(span), items)
    else:
        found = _prelude("sorted_by", span, _before(span), again(key), items)
    return _prelude("rev", span, found) if is_reversed else found


def extreme_call(cx: Context, node: ast.Call, name: Extreme) -> Steps[Expr]:
    """Translate `min` or `max` with `key` or `default`; of equal elements it is the first."""
    span, code = cx.span(node), BlockBuilder()
    given = {k.arg: k.value for k in node.keywords if k.arg is not None}
    if not node.args or not given.keys() <= {"key", "default"}:
        text = f"{name}(iterable, *, key=None, default=...) or {name}(a, b, ..., key=None)"
        return _refused(cx, node, name, "does not take these arguments", text)
    items = yield _candidates(cx, node)
    items = atom(items, "items", code.bind)
    key = yield _key(cx, given, span, code)
    if key is None:
        item = Var("item", span=span)
        key = Function((item,), item, span=span)
    order = _before(span, flipped=name == "max")
    best: Expr = _prelude("best_by", span, order, key, again(items))
    if "default" in given:
        length = Call(dim_size, (again(items),), {"dim": 0}, span=span)
        some = Call(less, (Constant(0, span=span), length), {}, span=span)
        best = If(some, best, (yield cx.expression(given["default"])), span=span)
    return code.close(best)


def _candidates(cx: Context, node: ast.Call) -> Steps[Expr]:
    if len(node.args) == 1:
        return (yield as_list(cx, node.args[0]))
    display = ast.copy_location(ast.List(node.args, ast.Load()), node)
    return (yield cx.expression(display))


def _key(
    cx: Context, given: Mapping[str, ast.expr], span: Span, code: BlockBuilder
) -> Steps[Expr | None]:
    """Translate `key`; a function of Python's own, such as `len`, is called in a lambda."""
    node = given.get("key")
    if node is None or is_none(node):
        return None
    node = as_function(cx, node)
    return atom((yield cx.expression(node)), "key", code.bind)


def _before(span: Span, *, flipped: bool = False) -> Function:
    """Return the predicate of two values that the first comes before the second."""
    left, right = Var("left", span=span), Var("right", span=span)
    pair = (right, left) if flipped else (left, right)
    return Function((left, right), Call(is_before, pair, {}, span=span), span=span)


def _prelude(name: str, span: Span, *args: Expr) -> Expr:
    return Call(GlobalVar(qualified(name), span=span), args, span=span)


def _refused(cx: Context, node: ast.Call, name: str, why: str, text: str) -> Expr:
    cx.program.report(WrongArguments(cx.span(node), name, why, text))
    return placeholder(cx.span(node))
