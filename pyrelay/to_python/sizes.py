"""Sizes that a program finds while it runs, and the variables that witness them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..ir.dims import Dim
from ..ir.expr import Call, Function, Var
from ..ir.traverse import bound_vars, pre_order
from ..ir.types import SizeType, TensorType


class Witness(NamedTuple):
    """A variable whose type shows a size: it is the size, or a tensor with it at a place."""

    var: Var
    place: int | None


def static_dims(call: Call) -> Iterator[Dim]:
    """Return the sizes among the static arguments of a call."""
    pending: list[Any] = list(call.attrs.values())
    while pending:
        match pending.pop():
            case Dim() as dim:
                yield dim
            case tuple() as inside:
                pending += inside
            case _:
                pass


def witnesses(function: Function) -> Mapping[str, tuple[Witness, ...]]:
    """Return for each size that a static argument mentions and no type parameter names the
    variables that witness it: first those of the function itself, then those of functions
    inside."""
    wanted: set[str] = set()
    declared: set[str] = set()
    for node in pre_order(function):
        if isinstance(node, Call):
            wanted |= {n for dim in static_dims(node) for n in dim.names()}
        elif isinstance(node, Function):
            declared |= {p.name for p in node.type_params}
    wanted -= declared
    if not wanted:
        return {}
    inside = {
        v
        for node in pre_order(function.body)
        if isinstance(node, Function)
        for part in pre_order(node)
        for v in bound_vars(part)
    }
    found: dict[str, list[Witness]] = {}
    for node in pre_order(function):
        for var in bound_vars(node):
            for name, witness in _witnesses(var):
                if name in wanted:
                    found.setdefault(name, []).append(witness)
    return {n: tuple(sorted(ts, key=lambda t: t.var in inside)) for n, ts in found.items()}


def _witnesses(var: Var) -> Iterator[tuple[str, Witness]]:
    match var.ty:
        case SizeType(Dim(name=str(name))):
            yield name, Witness(var, None)
        case TensorType(shape):
            for place, dim in enumerate(shape):
                if dim.name is not None:
                    yield dim.name, Witness(var, place)
        case _:
            pass
