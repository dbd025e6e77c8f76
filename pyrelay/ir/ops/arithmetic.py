"""Arithmetic of numbers and tensors, element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..op import (
    Effect,
    NoGradient,
    Op,
    Pointwise,
    Promotion,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    operand,
)
from ..rules import numeric


def binary_samples() -> Iterable[Sample]:
    """Give pairs of tensors: equal shapes, broadcast, 0-d, empty, strided, with a number."""
    yield Sample((TensorSpec((3, 4)), TensorSpec((3, 4))))
    yield Sample((TensorSpec((2, 1, 4)), TensorSpec((3, 1))))
    yield Sample((TensorSpec(()), TensorSpec((3,))))
    yield Sample((TensorSpec((0, 3)), TensorSpec((3,))))
    yield Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4, 3))))
    yield Sample((TensorSpec((3,)), 1.5))


add: Final = Op(
    name="add",
    doc="Sum of two tensors, element by element.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    effect=Effect.NONE,
    shape=ShapeBehaviour.POINTWISE,
    lowering=Pointwise(lambda k, x, y: k.add(x, y)),
    grad=lambda p: (p.g, p.g),
    hidden=(),
    hyper=(),
    torch_name="add",
    samples=binary_samples,
)

multiply: Final = Op(
    name="multiply",
    doc="Product of two tensors, element by element.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    effect=Effect.NONE,
    shape=ShapeBehaviour.POINTWISE,
    lowering=Pointwise(lambda k, x, y: k.mul(x, y)),
    grad=lambda p: (p.g * p.args[1], p.g * p.args[0]),
    hidden=(),
    hyper=(),
    torch_name="multiply",
    samples=binary_samples,
)

floor_divide: Final = Op(
    name="floor_divide",
    doc="Quotient rounded towards minus infinity, as Python's `//`.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    effect=Effect.NONE,
    shape=ShapeBehaviour.POINTWISE,
    lowering=Pointwise(lambda k, x, y: k.floordiv(x, y)),
    grad=NoGradient("piecewise constant"),
    hidden=(),
    hyper=(),
    torch_name="floor_divide",
    samples=lambda: (
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4), low=0.5))),
        Sample((TensorSpec((5,), "int64", -9, 9), TensorSpec((5,), "int64", 1, 5))),
    ),
)
