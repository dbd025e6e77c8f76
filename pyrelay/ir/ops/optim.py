"""Steps of optimisers, on one parameter."""

from __future__ import annotations

from typing import Final

from ..op import (
    Effect,
    Op,
    Pointwise,
    Promotion,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    operand,
)
from ..rules import numeric

sgd_step: Final = Op(
    name="sgd_step",
    doc="A parameter moved against its gradient: `param - lr * grad`.",
    params=(
        operand("param", promote=True),
        operand("grad", promote=True),
        operand("lr", promote=True),
    ),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    effect=Effect.NONE,
    shape=ShapeBehaviour.POINTWISE,
    lowering=Pointwise(lambda k, param, grad, lr: k.sub_product(param, grad, lr)),
    grad=lambda p: (p.g, -(p.g * p.args[2]), -(p.g * p.args[1])),
    hidden=(),
    hyper=(),
    torch_name=None,
    samples=lambda: (
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4)), 0.1)),
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4)), TensorSpec(()))),
        Sample((TensorSpec((0, 4)), TensorSpec((0, 4)), 0.1)),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4, 3)), 0.1)),
    ),
)
