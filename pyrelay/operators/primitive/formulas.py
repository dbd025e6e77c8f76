"""Bodies of pointwise operators as code: each method of `Scalars` calls the operator it stands for.

So a derivative, or a transform, reads the formula that kernels read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration.scalars import Scalars, compute_dtype
from ...ir.op import Op
from ...ir.types import UNIT, DType
from . import arithmetic, bitwise, compare, math

if TYPE_CHECKING:
    from ..builder import Builder, Value

SCALARS: Final = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "div": arithmetic.divide,
    "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.mod,
    "pow": arithmetic.power,
    "neg": arithmetic.negative,
    "abs": arithmetic.abs_,
    "sign": arithmetic.sign,
    "minimum": arithmetic.minimum,
    "maximum": arithmetic.maximum,
    "bit_and": bitwise.bitwise_and,
    "bit_or": bitwise.bitwise_or,
    "bit_xor": bitwise.bitwise_xor,
    "bit_not": bitwise.bitwise_not,
    "round": math.round_,
    "sigmoid": math.sigmoid,
    "eq": compare.equal,
    "ne": compare.not_equal,
    "lt": compare.less,
    "le": compare.less_equal,
    "gt": compare.greater,
    "ge": compare.greater_equal,
    **{
        op.name: op
        for op in (
            *(math.exp, math.expm1, math.log, math.log1p, math.sqrt, math.rsqrt, math.erf),
            *(math.sin, math.cos, math.tan, math.asin, math.acos, math.atan),
            *(math.sinh, math.cosh, math.tanh, math.floor, math.ceil),
            *(compare.logical_and, compare.logical_or, compare.logical_not, compare.logical_xor),
            *(compare.where, compare.isnan, compare.isfinite, compare.cast),
        )
    },
}
"""The scalar primitives: the operator that each method of `Scalars` stands for."""


class _Values(Scalars):
    """The arithmetic of pointwise bodies on values under construction."""

    def __init__(self, builder: Builder, dtype: DType) -> None:
        self._builder: Final = builder
        self._dtype: Final = dtype

    def const(self, value: float, /) -> Value:
        """Return a constant in the dtype of the computation."""
        return self._builder.constant(value, self._dtype)

    def cast(self, a: Value, dtype: DType, /) -> Value:
        """Return the value in another dtype."""
        return a.cast(dtype)


def _calling(op: Op) -> Callable[..., Value]:
    return lambda _, *operands: op(*operands)


_ValueScalars: Final = type(
    "ValueScalars", (_Values,), {n: _calling(op) for n, op in SCALARS.items() if n != "cast"}
)


def formula(body: Callable[..., Any], args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Return the value of a pointwise body in scalar primitives."""
    scalars = _ValueScalars(args[0].builder, compute_dtype([a.ty for a in args]))
    given = [None if a.ty == UNIT else a for a in args]
    return body(scalars, *given, *attrs.values())
