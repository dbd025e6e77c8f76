"""Subscripts: `x[...]` read, and items of a local name assigned."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final, final

from ...dataclass import dataclass
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.constant import placeholder
from ...ir.expr import Call, Constant, Expr, Tuple
from ...ir.op import Op
from ...ir.traverse import Steps
from ...operators.host.sizes import dim_size
from ...operators.primitive.index import index, set_at
from ...operators.primitive.join import stack
from ..calls.arguments import Callee, Slot, bind_arguments
from ..calls.mentions import value_of
from ..names.atoms import again, atom
from ..names.narrowing import value_at
from ..names.static import static_value
from ..program.context import Context
from ..source.scope import is_plain
from ..source.syntax import is_none
from .list_append import grown_value


@final
@dataclass(frozen=True, slots=True)
class Subscript:
    """The contents of the brackets: run-time indices, and their roles."""

    indices: tuple[Expr, ...]
    spec: tuple[tuple[Any, ...], ...]


_SET_AT: Final = Callee(
    "set_at",
    (Slot("input", required=True), Slot("index", required=True), Slot("value", required=True)),
    "set_at(input, index, value)",
)


def subscript(cx: Context, node: ast.Subscript) -> Steps[Expr]:
    """Translate `x[...]` as a value."""
    dim = _literal(node.slice)
    if dim is not None and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        base = yield cx.expression(node.value.value)
        return Call(dim_size, (base,), {"dim": dim}, span=cx.span(node))
    grown = grown_value(cx, node.value) if dim == -1 else None
    if grown is not None:
        # The list is stored backwards: the last element is in front.
        inside = cx.span(node.slice)
        return item(grown, first_place(inside), cx.span(node), inside)
    part = value_at(cx, node)
    if part is not None:
        return value_of(cx, part, ast.unparse(node), cx.span(node))
    base = yield cx.expression(node.value)
    place = yield read_place(cx, node.slice)
    return item(base, place, cx.span(node), cx.span(node.slice))


def item(base: Expr, place: Subscript, span: Span, inside: Span) -> Expr:
    """Return the elements at a place."""
    indices = Tuple(place.indices, span=inside)
    return Call(index, (base, indices), {"spec": place.spec}, span=span)


def replaced(base: Expr, place: Subscript, value: Expr, span: Span, inside: Span) -> Expr:
    """Return the value with other elements at a place."""
    indices = Tuple(place.indices, span=inside)
    return Call(set_at, (base, indices, value), {"spec": place.spec}, span=span)


def is_plain_set_at(node: ast.Call, op: Op) -> bool:
    """Return whether a call of `relay.set_at` says the place as an index, not as a `spec`."""
    if op is not set_at:
        return False
    return len(node.args) < len(op.params) and all(k.arg != "spec" for k in node.keywords)


def set_at_call(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `relay.set_at(x, index, value)`, with the index as it stands in brackets, and
    slices as `slice(start, stop)`."""
    found = bind_arguments(cx, node, _SET_AT)
    if found is None:
        return placeholder(cx.span(node))
    code = BlockBuilder()
    given: dict[str, Expr] = {}
    place = Subscript((), ())
    for name, argument in found.items():
        if name == "index":
            place = fixed((yield read_place(cx, argument)), code)
        else:
            given[name] = atom((yield cx.expression(argument)), name, code.bind)
    inside = cx.span(found["index"])
    return code.close(replaced(given["input"], place, given["value"], cx.span(node), inside))


def fixed(place: Subscript, code: BlockBuilder) -> Subscript:
    """Return a place whose indices and bounds are computed once."""
    indices = tuple(atom(i, "index", code.bind) for i in place.indices)
    spec = tuple(
        tuple(atom(p, "bound", code.bind) if isinstance(p, Expr) else p for p in entry)
        for entry in place.spec
    )
    return Subscript(indices, spec)


def copied(place: Subscript) -> Subscript:
    """Return a place of atoms for a second use."""
    spec = tuple(tuple(again(p) if isinstance(p, Expr) else p for p in e) for e in place.spec)
    return Subscript(tuple(again(i) for i in place.indices), spec)


def is_last(node: ast.expr) -> bool:
    """Return whether an index is `-1`."""
    return _literal(node) == -1


def first_place(span: Span) -> Subscript:
    """Return the place of the first element."""
    return Subscript((Constant(0, span=span),), (("int", 0),))


def _literal(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case _:
            return None


def read_place(cx: Context, node: ast.expr) -> Steps[Subscript]:
    """Translate the indices between the brackets."""
    entries: list[tuple[Any, ...]] = []
    indices: list[Expr] = []
    for part in node.elts if isinstance(node, ast.Tuple) else [node]:
        bounds = _slice(cx, part)
        match part:
            case _ if bounds is not None:
                bounds = yield _bounds(cx, bounds)
                entries.append(("slice", *bounds))
            case ast.Constant(value=None):
                entries.append(("new",))
            case ast.Constant(value=value) if value is Ellipsis:
                entries.append(("ellipsis",))
            case ast.List(elts=[_, *_] as elements):
                places = yield cx.expressions(elements)
                display = Tuple(tuple(places), span=cx.span(part))
                entries.append(("int", len(indices)))
                indices.append(Call(stack, (display,), {"dim": 0}, span=cx.span(part)))
            case _:
                entries.append(("int", len(indices)))
                indices.append((yield cx.expression(part)))
    return Subscript(tuple(indices), tuple(entries))


def _slice(cx: Context, node: ast.expr) -> tuple[ast.expr | None, ...] | None:
    """Return the start, stop and step of `a:b:c` or `slice(a, b, c)`; None for any other index."""
    match node:
        case ast.Slice(lower=lower, upper=upper, step=step):
            return lower, upper, step
        case ast.Call(func=function, args=[_, *_] as args, keywords=[]) if len(args) <= 3:
            known = static_value(cx, function)
            if known is None or known.value is not slice:
                return None
            bounds = (None, *args, None) if len(args) == 1 else (*args, None)
            return tuple(None if is_none(b) else b for b in bounds[:3])
        case _:
            return None


def _bounds(cx: Context, nodes: Sequence[ast.expr | None]) -> Steps[list[Any]]:
    """Return the bounds of a slice: numbers where they are known, else the sizes they compute."""
    found: list[Any] = []
    for node in nodes:
        if node is None:
            found.append(None)
            continue
        known = static_value(cx, node)
        if known is not None and is_plain(known.value):
            found.append(known.value)
        else:
            found.append((yield cx.expression(node)))
    return found
