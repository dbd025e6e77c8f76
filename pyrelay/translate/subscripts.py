"""Subscripts: `x[...]` read, and items of a local name assigned."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from ..diagnostics.source import Span
from ..ir.expr import Call, Constant, Expr, Tuple
from ..ir.ops.host import dim_size
from ..ir.ops.index import index, set_at
from ..ir.traverse import Steps
from .context import Context
from .growth import grown_value
from .mentions import value_of
from .narrowing import value_at
from .scope import is_plain
from .static import static_value


@final
@dataclass(frozen=True, slots=True)
class Place:
    """What stands between the brackets: run-time indices, and how they are meant."""

    indices: tuple[Expr, ...]
    spec: tuple[tuple[Any, ...], ...]


def subscript(cx: Context, node: ast.Subscript) -> Steps[Expr]:
    """Translate `x[...]` as a value."""
    dim = _literal(node.slice)
    if dim is not None and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        base = yield cx.expression(node.value.value)
        return Call(dim_size, (base,), {"dim": dim}, span=cx.span(node))
    grown = grown_value(cx, node.value) if dim == -1 else None
    if grown is not None:
        # The list is held the other way round: the last element is in front.
        first = Place((Constant(0, span=cx.span(node.slice)),), (("int", 0),))
        return item(grown, first, cx.span(node), cx.span(node.slice))
    part = value_at(cx, node)
    if part is not None:
        return value_of(cx, part, ast.unparse(node), cx.span(node))
    base = yield cx.expression(node.value)
    place = yield read_place(cx, node.slice)
    return item(base, place, cx.span(node), cx.span(node.slice))


def item(base: Expr, place: Place, span: Span, inside: Span) -> Expr:
    """Give the elements at a place."""
    indices = Tuple(place.indices, span=inside)
    return Call(index, (base, indices), {"spec": place.spec}, span=span)


def replaced(base: Expr, place: Place, value: Expr, span: Span, inside: Span) -> Expr:
    """Give the value with other elements at a place."""
    indices = Tuple(place.indices, span=inside)
    return Call(set_at, (base, indices, value), {"spec": place.spec}, span=span)


def _literal(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case _:
            return None


def read_place(cx: Context, node: ast.expr) -> Steps[Place]:
    """Translate what stands between the brackets."""
    entries: list[tuple[Any, ...]] = []
    indices: list[Expr] = []
    for part in _parts(node):
        match part:
            case ast.Slice(lower=lower, upper=upper, step=step):
                bounds = yield _bounds(cx, (lower, upper, step))
                entries.append(("slice", *bounds))
            case ast.Constant(value=None):
                entries.append(("new",))
            case ast.Constant(value=value) if value is Ellipsis:
                entries.append(("ellipsis",))
            case _:
                entries.append(("int", len(indices)))
                indices.append((yield cx.expression(part)))
    return Place(tuple(indices), tuple(entries))


def _parts(node: ast.expr) -> Sequence[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _bounds(cx: Context, nodes: Sequence[ast.expr | None]) -> Steps[list[Any]]:
    """Give the bounds of a slice: numbers where they are known, else the sizes they compute."""
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
