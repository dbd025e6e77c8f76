"""Functions of one real number, element by element; integers and bools become float32 first."""

from __future__ import annotations

import math as scalar_math
from collections.abc import Callable, Iterable
from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Gradient,
    NoGradient,
    Op,
    Pointwise,
    Promotion,
    Sample,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import numeric, one_shape, same_dtype
from ..shared.samples import (
    derivative_samples,
    filled,
    floats_between,
    kinked_samples,
    real_samples,
)

_TWO_OVER_ROOT_PI: Final = 2.0 / scalar_math.sqrt(scalar_math.pi)


def _function(
    *,
    name: str,
    doc: str,
    body: Callable[..., Any],
    grad: Gradient,
    samples: Callable[[], Iterable[Sample]],
) -> Op:
    """Return a real function of each element, named as in torch."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input", promote=True),),
        promotion=Promotion.FLOAT,
        type_rule=same_dtype,
        lowering=Pointwise(body),
        grad=grad,
        samples=samples,
    )


def _positive() -> Iterable[Sample]:
    yield from floats_between(0.25, 3.0)
    yield Sample((TensorSpec((3,), "int64", 1, 9),))
    yield Sample((filled(0.0, 2),), smooth=False)


def _above_minus_one() -> Iterable[Sample]:
    yield from floats_between(-0.75, 3.0)
    yield Sample((TensorSpec((3,), "int64", 0, 9),))


def _inside_one() -> Iterable[Sample]:
    yield from floats_between(-0.9, 0.9)
    yield Sample((TensorSpec((3,), "bool"),), smooth=False)


def _inside_quarter_turn() -> Iterable[Sample]:
    yield from floats_between(-1.2, 1.2)
    yield Sample((TensorSpec((3,), "int64", -1, 2),))


def _from_far() -> Iterable[Sample]:
    yield from real_samples()
    yield Sample((TensorSpec((6,), low=-1e-4, high=1e-4),))
    yield Sample((TensorSpec((6,), "float64", -1e12, 1e12),), smooth=False)


def _above_one() -> Iterable[Sample]:
    yield from floats_between(1.25, 9.0)
    yield Sample((TensorSpec((3,), "int64", 2, 9),))
    yield Sample((filled(1.0, 2),), smooth=False)
    yield Sample((TensorSpec((6,), "float64", 1e7, 1e12),), smooth=False)


def _slope(*, name: str, doc: str, body: Callable[..., Any], grad: Gradient, lowest: float) -> Op:
    """Return the derivative of a function of each element, by the function's result, which lies
    between `lowest` and 1."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("grad", promote=True), operand("output", promote=True)),
        promotion=Promotion.FLOAT,
        type_rule=one_shape,
        lowering=Pointwise(body),
        grad=grad,
        samples=lambda: derivative_samples(lowest, 1.0, ({},)),
    )


_LOG_OF_TWO: Final = scalar_math.log(2.0)
_LOG_OF_TEN: Final = scalar_math.log(10.0)

exp: Final = _function(
    name="exp",
    doc="e to the power of each element.",
    body=lambda k, x: k.exp(x),
    grad=lambda p: (p.g * p.out,),
    samples=real_samples,
)

expm1: Final = _function(
    name="expm1",
    doc="e to the power of each element, less 1, exact near 0.",
    body=lambda k, x: k.expm1(x),
    grad=lambda p: (p.g * (p.out + 1.0),),
    samples=real_samples,
)

log: Final = _function(
    name="log",
    doc="Natural logarithm of each element.",
    body=lambda k, x: k.log(x),
    grad=lambda p: (p.g / p.args[0],),
    samples=_positive,
)

log1p: Final = _function(
    name="log1p",
    doc="Natural logarithm of 1 plus each element, exact near 0.",
    body=lambda k, x: k.log1p(x),
    grad=lambda p: (p.g / (p.args[0] + 1.0),),
    samples=_above_minus_one,
)

sqrt: Final = _function(
    name="sqrt",
    doc="Square root of each element; its derivative at 0 is infinite, as in torch.",
    body=lambda k, x: k.sqrt(x),
    grad=lambda p: (p.g / (2.0 * p.out),),
    samples=_positive,
)

rsqrt: Final = _function(
    name="rsqrt",
    doc="1 over the square root of each element.",
    body=lambda k, x: k.rsqrt(x),
    grad=lambda p: (-0.5 * p.g * (p.out * p.out * p.out),),
    samples=_positive,
)

log2: Final = _function(
    name="log2",
    doc="Logarithm of each element to the base 2.",
    body=lambda k, x: k.mul(k.log(x), k.const(1.0 / _LOG_OF_TWO)),
    grad=lambda p: (p.g / (p.args[0] * _LOG_OF_TWO),),
    samples=_positive,
)

log10: Final = _function(
    name="log10",
    doc="Logarithm of each element to the base 10.",
    body=lambda k, x: k.mul(k.log(x), k.const(1.0 / _LOG_OF_TEN)),
    grad=lambda p: (p.g / (p.args[0] * _LOG_OF_TEN),),
    samples=_positive,
)

exp2: Final = _function(
    name="exp2",
    doc="2 to the power of each element.",
    body=lambda k, x: k.exp(k.mul(x, k.const(_LOG_OF_TWO))),
    grad=lambda p: (p.g * (p.out * _LOG_OF_TWO),),
    samples=real_samples,
)

reciprocal: Final = _function(
    name="reciprocal",
    doc="1 over each element.",
    body=lambda k, x: k.div(k.const(1.0), x),
    grad=lambda p: (-(p.g * (p.out * p.out)),),
    samples=_positive,
)

sin: Final = _function(
    name="sin",
    doc="Sine of each element, in radians.",
    body=lambda k, x: k.sin(x),
    grad=lambda p: (p.g * cos(p.args[0]),),
    samples=real_samples,
)

cos: Final = _function(
    name="cos",
    doc="Cosine of each element, in radians.",
    body=lambda k, x: k.cos(x),
    grad=lambda p: (-(p.g * sin(p.args[0])),),
    samples=real_samples,
)

tan: Final = _function(
    name="tan",
    doc="Tangent of each element, in radians.",
    body=lambda k, x: k.tan(x),
    grad=lambda p: (p.g * (1.0 + p.out * p.out),),
    samples=_inside_quarter_turn,
)

sinh: Final = _function(
    name="sinh",
    doc="Hyperbolic sine of each element.",
    body=lambda k, x: k.sinh(x),
    grad=lambda p: (p.g * cosh(p.args[0]),),
    samples=real_samples,
)

cosh: Final = _function(
    name="cosh",
    doc="Hyperbolic cosine of each element.",
    body=lambda k, x: k.cosh(x),
    grad=lambda p: (p.g * sinh(p.args[0]),),
    samples=real_samples,
)

tanh_grad: Final = _slope(
    name="tanh_grad",
    doc="`grad` times the derivative of `tanh`, from its result.",
    body=lambda k, g, y: k.tanh_grad(g, y),
    grad=lambda p: (tanh_grad(p.g, p.args[1]), -2.0 * p.g * p.args[0] * p.args[1]),
    lowest=-1.0,
)

tanh: Final = _function(
    name="tanh",
    doc="Hyperbolic tangent of each element.",
    body=lambda k, x: k.tanh(x),
    grad=lambda p: (tanh_grad(p.g, p.out),),
    samples=real_samples,
)

sigmoid_grad: Final = _slope(
    name="sigmoid_grad",
    doc="`grad` times the derivative of `sigmoid`, from its result.",
    body=lambda k, g, y: k.sigmoid_grad(g, y),
    grad=lambda p: (sigmoid_grad(p.g, p.args[1]), p.g * p.args[0] * (1.0 - 2.0 * p.args[1])),
    lowest=0.0,
)

sigmoid: Final = _function(
    name="sigmoid",
    doc="1 / (1 + exp(-x)) of each element.",
    body=lambda k, x: k.sigmoid(x),
    grad=lambda p: (sigmoid_grad(p.g, p.out),),
    samples=real_samples,
)

asin: Final = _function(
    name="asin",
    doc="Angle, in radians, whose sine is each element.",
    body=lambda k, x: k.asin(x),
    grad=lambda p: (p.g * rsqrt(1.0 - p.args[0] * p.args[0]),),
    samples=_inside_one,
)

acos: Final = _function(
    name="acos",
    doc="Angle, in radians, whose cosine is each element.",
    body=lambda k, x: k.acos(x),
    grad=lambda p: (-(p.g * rsqrt(1.0 - p.args[0] * p.args[0])),),
    samples=_inside_one,
)

atan: Final = _function(
    name="atan",
    doc="Angle, in radians, whose tangent is each element.",
    body=lambda k, x: k.atan(x),
    grad=lambda p: (p.g / (1.0 + p.args[0] * p.args[0]),),
    samples=real_samples,
)

asinh: Final = _function(
    name="asinh",
    doc="Number whose hyperbolic sine is each element.",
    body=lambda k, x: k.asinh(x),
    grad=lambda p: (p.g * rsqrt(p.args[0] * p.args[0] + 1.0),),
    samples=_from_far,
)

acosh: Final = _function(
    name="acosh",
    doc="Number, not negative, whose hyperbolic cosine is each element, which is 1 or more.",
    body=lambda k, x: k.acosh(x),
    # The factors are exact near 1, where the square less 1 is not.
    grad=lambda p: (p.g * rsqrt((p.args[0] - 1.0) * (p.args[0] + 1.0)),),
    samples=_above_one,
)

atanh: Final = _function(
    name="atanh",
    doc="Number whose hyperbolic tangent is each element, which lies between -1 and 1.",
    body=lambda k, x: k.atanh(x),
    grad=lambda p: (p.g / ((1.0 - p.args[0]) * (1.0 + p.args[0])),),
    samples=_inside_one,
)

erf: Final = _function(
    name="erf",
    doc="Error function of each element.",
    body=lambda k, x: k.erf(x),
    grad=lambda p: (p.g * (_TWO_OVER_ROOT_PI * exp(-(p.args[0] * p.args[0]))),),
    samples=real_samples,
)

floor: Final = Op(
    name="floor",
    doc="Largest whole number not above each element, in the same dtype.",
    params=(operand("input"),),
    type_rule=numeric,
    lowering=Pointwise(lambda k, x: k.floor(x)),
    grad=NoGradient("piecewise constant"),
    samples=kinked_samples,
)

ceil: Final = Op(
    name="ceil",
    doc="Smallest whole number not below each element, in the same dtype.",
    params=(operand("input"),),
    type_rule=numeric,
    lowering=Pointwise(lambda k, x: k.ceil(x)),
    grad=NoGradient("piecewise constant"),
    samples=kinked_samples,
)

trunc: Final = Op(
    name="trunc",
    doc="Each element without its fraction, in the same dtype.",
    params=(operand("input"),),
    type_rule=numeric,
    lowering=Pointwise(lambda k, x: k.where(k.lt(x, k.const(0)), k.ceil(x), k.floor(x))),
    grad=NoGradient("piecewise constant"),
    samples=kinked_samples,
)


def _round(k: Any, x: Any, decimals: int) -> Any:
    if decimals == 0:
        return k.round(x)
    # Scaled by a whole power of ten on the side where it is exact.
    scale = k.const(float(10 ** abs(decimals)))
    if decimals > 0:
        return k.div(k.round(k.mul(x, scale)), scale)
    return k.mul(k.round(k.div(x, scale)), scale)


round_: Final = Op(
    name="round",
    doc="Nearest number of `decimals` digits, halves to even, in the same dtype.",
    params=(operand("input"), attribute("decimals", 0, kinds.whole)),
    type_rule=numeric,
    lowering=Pointwise(_round),
    grad=NoGradient("piecewise constant"),
    samples=lambda: (
        *kinked_samples(),
        Sample((filled(0.5, 2),), smooth=False),
        Sample((filled(-1.5, 2),), smooth=False),
        Sample((TensorSpec((3, 4), low=-9.0, high=9.0),), {"decimals": 1}),
        Sample((TensorSpec((3, 4), low=-900.0, high=900.0),), {"decimals": -2}),
    ),
)
