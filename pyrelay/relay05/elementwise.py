"""Relay's elementwise operators, comparisons and casts."""

from __future__ import annotations

from typing import Any, Final

from ..ir.expr import Call, Expr
from ..ir.op import Op
from ..ir.types import DType, DTypeKind
from ..operators.composite import elementwise
from ..operators.host import sizes
from ..operators.primitive import activation, arithmetic, bitwise, compare, create, math, view
from ..operators.primitive.reduce import sum_to
from . import attributes
from .attributes import Attribute
from .imported import Emit, Imported, always

_FAR: Final = 2**62
"""Beyond what a bound of integers may be."""


def _unary(name: str, op: Op) -> Imported:
    return Imported(name=name, operands=("x",), build=lambda e, x: e.call(op, x))


def _binary(name: str, op: Op) -> Imported:
    return Imported(name=name, operands=("lhs", "rhs"), build=lambda e, x, y: e.call(op, x, y))


def _same(_: Emit, x: Expr) -> Expr:
    return x


def _clip(e: Emit, x: Expr, *, a_min: float, a_max: float) -> Expr:
    if e.dtype(x).kind is DTypeKind.FLOAT:
        return e.call(activation.clip, x, e.number(a_min), e.number(a_max))
    low, high = (int(max(-_FAR, min(bound, _FAR))) for bound in (a_min, a_max))
    return e.call(activation.clip, x, e.number(low), e.number(high))


def _cast(e: Emit, x: Expr, *, dtype: DType) -> Expr:
    return e.call(compare.cast, x, dtype=dtype)


def shape_of(e: Emit, x: Expr) -> Call:
    """Return the shape of a value as an attribute: a tuple of sizes."""
    return e.call(sizes.shape, x)


def _like(op: Op, attribute: str) -> Any:
    return lambda e, x, y: e.call(op, x, **{attribute: shape_of(e, y)})


def _full_like(e: Emit, x: Expr, value: Expr) -> Expr:
    filled = e.call(compare.cast, value, dtype=e.dtype(x))
    return e.call(view.expand, filled, size=shape_of(e, x))


ELEMENTWISE: Final = (
    _binary("add", arithmetic.add),
    _binary("subtract", arithmetic.subtract),
    _binary("multiply", arithmetic.multiply),
    _binary("divide", elementwise.quotient),
    _binary("floor_divide", arithmetic.floor_divide),
    _binary("trunc_divide", elementwise.quotient),
    _binary("mod", elementwise.fmod),
    _binary("trunc_mod", elementwise.fmod),
    _binary("floor_mod", arithmetic.mod),
    _binary("power", arithmetic.power),
    _binary("maximum", arithmetic.maximum),
    _binary("minimum", arithmetic.minimum),
    _binary("equal", compare.equal),
    _binary("not_equal", compare.not_equal),
    _binary("less", compare.less),
    _binary("less_equal", compare.less_equal),
    _binary("greater", compare.greater),
    _binary("greater_equal", compare.greater_equal),
    _binary("logical_and", compare.logical_and),
    _binary("logical_or", compare.logical_or),
    _binary("logical_xor", compare.logical_xor),
    _unary("logical_not", compare.logical_not),
    _binary("bitwise_and", bitwise.bitwise_and),
    _binary("bitwise_or", bitwise.bitwise_or),
    _binary("bitwise_xor", bitwise.bitwise_xor),
    _unary("bitwise_not", bitwise.bitwise_not),
    _unary("negative", arithmetic.negative),
    _unary("abs", arithmetic.abs_),
    _unary("sign", arithmetic.sign),
    _unary("exp", math.exp),
    _unary("log", math.log),
    _unary("log2", math.log2),
    _unary("log10", math.log10),
    _unary("sqrt", math.sqrt),
    _unary("rsqrt", math.rsqrt),
    _unary("sin", math.sin),
    _unary("cos", math.cos),
    _unary("tan", math.tan),
    _unary("sinh", math.sinh),
    _unary("cosh", math.cosh),
    _unary("tanh", math.tanh),
    _unary("asin", math.asin),
    _unary("acos", math.acos),
    _unary("atan", math.atan),
    _unary("acosh", math.acosh),
    _unary("asinh", math.asinh),
    _unary("atanh", math.atanh),
    _unary("erf", math.erf),
    _unary("floor", math.floor),
    _unary("ceil", math.ceil),
    _unary("trunc", math.trunc),
    _unary("round", math.round_),
    _unary("sigmoid", math.sigmoid),
    _unary("isnan", compare.isnan),
    _unary("isfinite", compare.isfinite),
    _unary("isinf", compare.isinf),
    _unary("zeros_like", create.zeros_like),
    _unary("ones_like", create.ones_like),
    Imported(name="copy", operands=("data",), build=_same),
    Imported(name="annotation.stop_fusion", operands=("data",), build=_same),
    Imported(name="annotation.checkpoint", operands=("data",), build=_same),
    Imported(
        name="clip",
        operands=("a",),
        attributes={n: Attribute(attributes.number) for n in ("a_min", "a_max")},
        build=_clip,
        needs_types=always,
    ),
    Imported(
        name="cast",
        operands=("data",),
        attributes={"dtype": Attribute(attributes.dtype)},
        build=_cast,
    ),
    Imported(
        name="cast_like",
        operands=("data", "dtype_like"),
        build=lambda e, x, like: e.call(compare.cast, x, dtype=e.dtype(like)),
        needs_types=always,
    ),
    Imported(
        name="full_like", operands=("data", "fill_value"), build=_full_like, needs_types=always
    ),
    Imported(
        name="where",
        operands=("condition", "x", "y"),
        build=lambda e, c, x, y: e.call(compare.where, c, x, y),
    ),
    Imported(name="reshape_like", operands=("lhs", "rhs"), build=_like(view.reshape, "shape")),
    Imported(name="broadcast_to_like", operands=("data", "like"), build=_like(view.expand, "size")),
    Imported(name="collapse_sum_like", operands=("data", "like"), build=_like(sum_to, "size")),
)
