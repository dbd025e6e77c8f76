"""Tensors of numbers that only the running program knows: `relay.full((n,), x)`.

The number is an attribute where the program states it. Another one is read as an operand: it is
added to zeros, which is a tensor of its own that may be written to, as torch's is.
"""

from __future__ import annotations

from typing import Any, Final

from ...ir.expr import Constant, Expr
from ...ir.op import Clash, Op, Stuck
from ...ir.types import (
    DEFAULT_DTYPE,
    AnyDType,
    DTypeHole,
    SizeType,
    TensorType,
    Type,
    TypeHole,
    bool_,
    float32,
    int64,
    show,
)
from ...operators.primitive.arithmetic import add, multiply, subtract
from ...operators.primitive.bitwise import bitwise_or
from ...operators.primitive.compare import cast
from ...operators.primitive.create import full, full_like
from ...operators.primitive.random import uniform
from ..operators import OperatorCall, is_literal
from ..solver import Solver
from .sites import ReadCall, Reader

_NUMBERS: Final = {full: ("fill_value",), full_like: ("fill_value",), uniform: ("low", "high")}
"""The attributes that may be such numbers."""


def filled(call: OperatorCall, solver: Solver) -> ReadCall | None:
    """Return the place of a call that is read so, None if it states its numbers. Raises Stuck and
    Clash."""
    running = [name for name in _NUMBERS[call.op] if _is_running(call, name, solver)]
    return ReadCall(call, solver) if running else None


def _is_running(call: OperatorCall, name: str, solver: Solver) -> bool:
    value = call.call.attrs.get(name)
    if not isinstance(value, Expr) or is_literal(value):
        return False
    ty = solver.resolve(solver.known(call.attr_types[value]))
    match ty:
        case SizeType():
            return False
        case TensorType(()):
            return True
        case _:
            raise Clash(f"`{name}` of `{call.op.name}` is one number, not {show(ty)}")


def _full(site: ReadCall) -> Expr:
    value = site.attrs["fill_value"]
    found = _number(site, value, site.attrs.get("dtype") or _dtype(site.attribute_type(value)))
    return _filled(site, found, full, size=site.attribute("size"))


def _full_like(site: ReadCall) -> Expr:
    dtype = site.attrs.get("dtype") or _dtype(site.solver.resolve(site.types[0]))
    found = _number(site, site.attrs["fill_value"], dtype)
    return _filled(site, found, full_like, site.operand(0))


def _filled(
    site: ReadCall, number: tuple[Expr, AnyDType], op: Op, *args: Expr, **attrs: Any
) -> Expr:
    value, dtype = number
    is_bool = dtype == bool_
    zeros = site.call(op, *args, **attrs, fill_value=False if is_bool else 0, dtype=dtype)
    return site.call(bitwise_or if is_bool else add, zeros, value)


def _uniform(site: ReadCall) -> Expr:
    dtype = site.attrs.get("dtype") or float32
    attrs = {n: site.attribute(n) for n in site.attrs if n not in _NUMBERS[uniform]}
    low, high = (
        _number(site, site.attrs.get(name, default), dtype)[0]
        for name, default in (("low", 0.0), ("high", 1.0))
    )
    width = site.call(subtract, high, low)
    return site.call(
        add, low, site.call(multiply, width, site.call(uniform, site.operand(0), **attrs))
    )


def _number(site: ReadCall, value: Any, dtype: AnyDType) -> tuple[Expr, AnyDType]:
    """Return a number as an operand of a dtype."""
    if not isinstance(value, Expr):
        value = Constant(value, span=site.span)
        return site.call(cast, value, dtype=dtype), dtype
    found = site.value(value)
    own = site.attribute_type(value)
    is_cast = isinstance(own, TensorType) and _dtype(own) == dtype
    return (found if is_cast else site.call(cast, found, dtype=dtype)), dtype


def _dtype(ty: Type) -> AnyDType:
    """Return the dtype of a value; that of a literal is what it has alone. Raises Stuck."""
    if isinstance(ty, TypeHole):
        raise Stuck(ty)
    if not isinstance(ty, TensorType):
        return int64
    if not isinstance(ty.dtype, DTypeHole):
        return ty.dtype
    if ty.dtype.weak is None:
        raise Stuck(ty.dtype)
    return DEFAULT_DTYPE[ty.dtype.weak]


READERS: Final[dict[Op, Reader]] = {full: _full, full_like: _full_like, uniform: _uniform}
