"""Overloads on tuples: `x[a:b]`, `len(x)`, `sum(x)` and loops."""

from __future__ import annotations

from typing import Final

from ...ir.expr import Expr, If, Tuple, TupleGet
from ...ir.op import Clash, Op
from ...ir.types import SizeType, TensorType, TupleType, Type, TypeHole, show
from ...operators.host.loop import backwards, element_at
from ...operators.host.sizes import dim_size
from ...operators.primitive.arithmetic import add, maximum, minimum
from ...operators.primitive.compare import equal
from ...operators.primitive.extrema import amax, amin
from ...operators.primitive.index import index
from ...operators.primitive.reduce import sum_
from ..operators import OperatorCall
from .sites import ReadCall, Reader, nothing


def _of_fields(op: Op, none: int | None, name: str) -> Reader:
    """Return the reading of `sum`, `max` or `min` of a tuple; `none` is the value of the empty
    one."""

    def read(site: ReadCall) -> Expr:
        fields = _parts(site)
        if not fields and none is None:
            raise Clash(f"`{name}` of nothing", labels={0: "this is empty"})
        found: Expr = fields.pop(0) if fields else site.number(none or 0)
        for value in fields:
            found = site.call(op, found, value)
        return found

    return read


def _parts(site: ReadCall) -> list[Expr]:
    """Return the fields of the first operand, a tuple."""
    ty = site.solver.shallow(site.types[0])
    assert isinstance(ty, TupleType)
    whole = site.operand(0)
    return [TupleGet(whole, i, span=site.span) for i in range(len(ty.fields))]


def _kind(ty: Type) -> type[Type]:
    return TensorType if isinstance(ty, SizeType) else type(ty)


def _field_at(site: ReadCall) -> Expr:
    """Return the field at a place, which only the running program knows. Raises Clash where the
    fields are no elements of one type."""
    whole = site.solver.resolve(site.types[0])
    assert isinstance(whole, TupleType)
    if len({_kind(ty) for ty in whole.fields} - {TypeHole}) > 1:
        raise Clash(
            "a loop runs over fields of one type",
            labels={0: f"this is {show(whole)}"},
            help="write what is done with each field out",
        )
    *others, value = _parts(site)
    for number, part in reversed(list(enumerate(others))):
        here = site.call(equal, site.operand(1), site.number(number))
        value = If(here, part, value, span=site.span)
    return value


def _some_fields(site: ReadCall) -> Expr:
    ((_, start, stop, step),) = site.attrs["spec"]
    if step == 0:
        raise Clash("a slice takes no step of 0")
    return Tuple(tuple(_parts(site)[slice(start, stop, step)]), span=site.span)


def of_tuple(call: OperatorCall) -> Reader | None:
    """Return the resolver of a call whose first operand is a tuple; None if the call resolves to
    the operator itself, as `pair[0]` does."""
    if call.op is not index:
        return _ON_TUPLES.get(call.op)
    match call.call.attrs["spec"]:
        case (("slice", *bounds),) if all(b is None or isinstance(b, int) for b in bounds):
            return _some_fields
        case _:
            return None


_ON_TUPLES: Final[dict[Op, Reader]] = {
    dim_size: lambda site: site.number(len(_parts(site))),
    element_at: lambda site: _field_at(site) if _parts(site) else nothing(site),
    backwards: lambda site: Tuple(tuple(_parts(site)[::-1]), span=site.span),
    sum_: _of_fields(add, 0, "sum"),
    amax: _of_fields(maximum, None, "max"),
    amin: _of_fields(minimum, None, "min"),
}
