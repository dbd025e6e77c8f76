"""Arithmetic of numbers and tensors, element by element, with broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.expr import Constant
from ...ir.op import (
    NoGradient,
    Op,
    Pointwise,
    Precision,
    Promotion,
    Pullback,
    Sample,
    TensorSpec,
    operand,
)
from ...ir.rules import numeric
from ..shared.samples import (
    binary_samples,
    filled,
    kinked_samples,
    numeric_pairs,
    numeric_samples,
    pairs_between,
    tied_pairs,
)
from .compare import equal, greater, greater_equal, less, logical_and, where
from .math import log, sigmoid

if TYPE_CHECKING:
    from ..builder import Value

add: Final = Op(
    name="add",
    doc="Sum of two tensors, element by element.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    lowering=Pointwise(lambda k, x, y: k.add(x, y)),
    grad=lambda p: (p.g, p.g),
    samples=numeric_pairs,
)

subtract: Final = Op(
    name="subtract",
    doc="Difference of two tensors, element by element.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    lowering=Pointwise(lambda k, x, y: k.sub(x, y)),
    grad=lambda p: (p.g, -p.g),
    samples=numeric_pairs,
)

multiply: Final = Op(
    name="multiply",
    doc="Product of two tensors, element by element.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    lowering=Pointwise(lambda k, x, y: k.mul(x, y)),
    grad=lambda p: (p.g * p.args[1], p.g * p.args[0]),
    samples=numeric_pairs,
)

divide: Final = Op(
    name="divide",
    doc="Quotient of two tensors, element by element; integers give float32.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.FLOAT,
    type_rule=numeric,
    lowering=Pointwise(lambda k, x, y: k.div(x, y)),
    grad=lambda p: (p.g / p.args[1], -(p.g * (p.out / p.args[1]))),
    samples=lambda: (
        *pairs_between(-2.0, 2.0, 0.5, 2.0),
        *pairs_between(-2.0, 2.0, -2.0, -0.5),
        Sample((TensorSpec((3, 4), "int64", -9, 9), TensorSpec((4,), "int64", 1, 9))),
        Sample((TensorSpec((3,)), TensorSpec((3,), "int64", 1, 5))),
        Sample((TensorSpec((3,), "int64", -5, 5), 2)),
        Sample((1.0, TensorSpec((3,), low=0.5))),
    ),
)


def _divided() -> Iterable[Sample]:
    yield from pairs_between(-9.0, 9.0, 0.5, 2.0)
    yield from pairs_between(-9.0, 9.0, -2.0, -0.5)
    yield Sample((TensorSpec((5,), "int64", -9, 9), TensorSpec((5,), "int64", 1, 5)))
    yield Sample((TensorSpec((5,), "int64", -9, 9), TensorSpec((5,), "int64", -4, 0)))
    yield Sample((TensorSpec((5,), "int64", -9, 9), 2))


floor_divide: Final = Op(
    name="floor_divide",
    doc="Quotient rounded towards minus infinity, as Python's `//`.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    lowering=Pointwise(lambda k, x, y: k.floordiv(x, y)),
    grad=NoGradient("piecewise constant"),
    samples=_divided,
)

mod: Final = Op(
    name="mod",
    doc="Remainder with the sign of the divisor, as Python's `%`.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    lowering=Pointwise(lambda k, x, y: k.mod(x, y)),
    grad=lambda p: (p.g, -(p.g * floor_divide(p.args[0], p.args[1]))),
    torch_name="remainder",
    samples=_divided,
)


def _power_grad(p: Pullback) -> Sequence[Value | None]:
    x, exponent = p.args
    match exponent.atom:
        case Constant(value=int() | float() as number):
            return _constant_power_grad(p.g, x, float(number)), None
        case _:
            pass
    # Both arms are kept finite where they are not chosen: the rule is differentiated again.
    constant = equal(exponent, 0.0)
    base = where(constant, 1.0, x)
    slope = exponent * power(base, exponent - 1.0)
    flat = logical_and(equal(x, 0.0), greater_equal(exponent, 0.0))
    growth = p.out * log(where(flat, 1.0, x))
    return where(constant, 0.0, p.g * slope), where(flat, 0.0, p.g * growth)


def _constant_power_grad(g: Value, x: Value, exponent: float) -> Value | None:
    if exponent == 0.0:
        return None
    if exponent == 1.0:
        return g
    if exponent == 2.0:
        return g * (2.0 * x)
    return g * (exponent * power(x, exponent - 1.0))


power: Final = Op(
    name="power",
    doc="`input` to the power of `exponent`, element by element.",
    params=(operand("input", promote=True), operand("exponent", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    lowering=Pointwise(lambda k, x, y: k.pow(x, y)),
    grad=_power_grad,
    torch_name="pow",
    samples=lambda: (
        *pairs_between(0.25, 2.0, -2.0, 2.0),
        *(Sample((TensorSpec((3, 2)), e)) for e in (0.0, 1.0, 2.0, 3.0, 2)),
        Sample((TensorSpec((3,), low=0.5), -1.5)),
        Sample((TensorSpec((3,), low=0.5), 0.5)),
        Sample((2.0, TensorSpec((3, 2)))),
        Sample((filled(0.0, 2), 2.0)),
        Sample((filled(0.0, 2), filled(2.0, 2)), smooth=False),
        Sample((filled(0.0, 2), filled(0.0)), smooth=False),
        Sample((TensorSpec((3,), "int64", -3, 4), TensorSpec((3,), "int64", 0, 4))),
        Sample((TensorSpec((3,), "int64", -3, 4), 2)),
    ),
)

square: Final = Op(
    name="square",
    doc="Each element times itself.",
    params=(operand("input"),),
    type_rule=numeric,
    lowering=Pointwise(lambda k, x: k.mul(x, x)),
    grad=lambda p: (p.g * (2.0 * p.args[0]),),
    samples=numeric_samples,
)

negative: Final = Op(
    name="negative",
    doc="Each element with its sign changed.",
    params=(operand("input"),),
    type_rule=numeric,
    precision=Precision.ANY,
    lowering=Pointwise(lambda k, x: k.neg(x)),
    grad=lambda p: (-p.g,),
    samples=numeric_samples,
)

sign: Final = Op(
    name="sign",
    doc="-1, 0 or 1 with the sign of each element.",
    params=(operand("input"),),
    type_rule=numeric,
    lowering=Pointwise(lambda k, x: k.sign(x)),
    grad=NoGradient("piecewise constant"),
    samples=kinked_samples,
)

abs_: Final = Op(
    name="abs",
    doc="Absolute value of each element; its derivative at 0 is 0.",
    params=(operand("input"),),
    type_rule=numeric,
    precision=Precision.ANY,
    lowering=Pointwise(lambda k, x: k.abs(x)),
    grad=lambda p: (p.g * sign(p.args[0]),),
    samples=kinked_samples,
)


def _extremum_grad(loses: Op) -> Callable[[Pullback], Sequence[Value | None]]:
    """Return the rule that sends `g` to the operand chosen, half to each where they are equal."""

    def grad(p: Pullback) -> Sequence[Value | None]:
        x, y = p.args
        shared = where(equal(x, y), p.g * 0.5, p.g)
        return where(loses(x, y), 0.0, shared), where(loses(y, x), 0.0, shared)

    return grad


minimum: Final = Op(
    name="minimum",
    doc="The smaller of two tensors, element by element; not-a-number wins.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    precision=Precision.ANY,
    lowering=Pointwise(lambda k, x, y: k.minimum(x, y)),
    grad=_extremum_grad(greater),
    samples=lambda: (*numeric_pairs(), *tied_pairs()),
)

maximum: Final = Op(
    name="maximum",
    doc="The larger of two tensors, element by element; not-a-number wins.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    precision=Precision.ANY,
    lowering=Pointwise(lambda k, x, y: k.maximum(x, y)),
    grad=_extremum_grad(less),
    samples=lambda: (*numeric_pairs(), *tied_pairs()),
)


def _logaddexp(k: Any, x: Any, y: Any) -> Any:
    spread = k.log1p(k.exp(k.neg(k.abs(k.sub(x, y)))))
    # Equal infinities have no difference, and are their own sum.
    return k.where(k.eq(x, y), k.add(x, k.const(math.log(2.0))), k.add(k.maximum(x, y), spread))


def _logaddexp_grad(p: Pullback) -> Sequence[Value | None]:
    x, y = p.args
    return p.g * sigmoid(x - y), p.g * sigmoid(y - x)


logaddexp: Final = Op(
    name="logaddexp",
    doc="Logarithm of the sum of the exponentials of two tensors, without overflow.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.FLOAT,
    type_rule=numeric,
    lowering=Pointwise(_logaddexp),
    grad=_logaddexp_grad,
    samples=lambda: (
        *binary_samples(),
        Sample((filled(300.0, 3), filled(299.0, 3))),
        Sample((filled(-math.inf, 2), TensorSpec((2,))), smooth=False),
        Sample((filled(1.0, 2), filled(1.0))),
    ),
)
