"""Activation functions, element by element, and `stop_gradient`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Layouts,
    NoGradient,
    Op,
    Param,
    Pointwise,
    Precision,
    Promotion,
    Pullback,
    Role,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import broadcast_shapes, numeric, same_dtype
from ...ir.types import UNIT, TensorType, Type
from ..shared.samples import filled, kinked_samples, numeric_samples, real_samples
from .compare import greater, greater_equal, less, less_equal, logical_and, logical_or, where
from .derivatives import (
    approximation,
    elu_grad,
    gelu_grad,
    leaky_relu_grad,
    relu_grad,
    silu_grad,
    softplus_grad,
)
from .math import sigmoid

if TYPE_CHECKING:
    from ..builder import Value


relu: Final = Op(
    name="relu",
    doc="Each element where it is positive, else 0; its derivative at 0 is 0.",
    params=(operand("input"),),
    type_rule=numeric,
    precision=Precision.ANY,
    lowering=Pointwise(lambda k, x: k.relu(x)),
    grad=lambda p: (relu_grad(p.g, p.out),),
    torch_name="nn.functional.relu",
    samples=kinked_samples,
)

gelu: Final = Op(
    name="gelu",
    doc="Each element times the normal distribution function at it, or its tanh approximation.",
    params=(operand("input", promote=True), attribute("approximate", "none", approximation)),
    promotion=Promotion.FLOAT,
    type_rule=same_dtype,
    lowering=Pointwise(lambda k, x, approximate: k.gelu(x, approximate)),
    grad=lambda p: (gelu_grad(p.g, p.args[0], **p.attrs),),
    torch_name="nn.functional.gelu",
    samples=lambda: (
        *real_samples(),
        *(Sample(s.operands, {"approximate": "tanh"}) for s in real_samples()),
    ),
)


silu: Final = Op(
    name="silu",
    doc="Each element times its sigmoid.",
    params=(operand("input", promote=True),),
    promotion=Promotion.FLOAT,
    type_rule=same_dtype,
    lowering=Pointwise(lambda k, x: k.silu(x)),
    grad=lambda p: (silu_grad(p.g, p.args[0]),),
    torch_name="nn.functional.silu",
    samples=real_samples,
)


softplus: Final = Op(
    name="softplus",
    doc="log(1 + exp(beta x)) / beta of each element; x itself where beta x is over `threshold`.",
    params=(
        operand("input", promote=True),
        attribute("beta", 1.0, kinds.real),
        attribute("threshold", 20.0, kinds.real),
    ),
    promotion=Promotion.FLOAT,
    type_rule=same_dtype,
    lowering=Pointwise(lambda k, x, beta, threshold: k.softplus(x, beta, threshold)),
    grad=lambda p: (softplus_grad(p.g, p.args[0], **p.attrs),),
    torch_name="nn.functional.softplus",
    samples=lambda: (
        *real_samples(),
        Sample((TensorSpec((3, 4)),), {"beta": 2.5}),
        Sample((TensorSpec((3, 4)),), {"beta": 1.0, "threshold": 0.25}),
        Sample((TensorSpec((4,), low=15.0, high=200.0),)),
    ),
)


leaky_relu: Final = Op(
    name="leaky_relu",
    doc="Each element where it is positive, else the element times `negative_slope`.",
    params=(operand("input", promote=True), attribute("negative_slope", 0.01, kinds.real)),
    promotion=Promotion.FLOAT,
    type_rule=same_dtype,
    lowering=Pointwise(lambda k, x, slope: k.leaky_relu(x, slope)),
    grad=lambda p: (leaky_relu_grad(p.g, p.args[0], **p.attrs),),
    torch_name="nn.functional.leaky_relu",
    samples=lambda: (
        *real_samples(),
        Sample((TensorSpec((3, 4)),), {"negative_slope": 0.2}),
        Sample((filled(0.0, 3),), smooth=False),
    ),
)


elu: Final = Op(
    name="elu",
    doc="Each element where it is positive, else `alpha` times its exponential less 1.",
    params=(operand("input", promote=True), attribute("alpha", 1.0, kinds.real)),
    promotion=Promotion.FLOAT,
    type_rule=same_dtype,
    lowering=Pointwise(lambda k, x, alpha: k.elu(x, alpha)),
    grad=lambda p: (elu_grad(p.g, p.args[0], **p.attrs),),
    torch_name="nn.functional.elu",
    samples=lambda: (
        *real_samples(),
        Sample((TensorSpec((3, 4)),), {"alpha": 0.5}),
        Sample((filled(1000.0, 2),)),
        Sample((filled(0.0, 3),), smooth=False),
    ),
)


def _logsigmoid(k: Any, x: Any) -> Any:
    return k.sub(k.minimum(x, k.const(0.0)), k.log1p(k.exp(k.neg(k.abs(x)))))


logsigmoid: Final = Op(
    name="logsigmoid",
    doc="Logarithm of the sigmoid of each element, without overflow.",
    params=(operand("input", promote=True),),
    promotion=Promotion.FLOAT,
    type_rule=same_dtype,
    lowering=Pointwise(_logsigmoid),
    grad=lambda p: (p.g * sigmoid(-p.args[0]),),
    torch_name="nn.functional.logsigmoid",
    samples=lambda: (*real_samples(), Sample((filled(-500.0, 2),)), Sample((filled(500.0, 2),))),
)


def _clip_type(call: RuleCall) -> Type:
    present = [i for i in range(3) if call.given(i)]
    if len(present) == 1:
        call.clash("`clip` needs `min`, `max` or both", 0)
    operands = [call.tensor(i) for i in present]
    return TensorType(broadcast_shapes(call, [t.shape for t in operands]), operands[0].dtype)


def _clip(k: Any, x: Any, low: Any, high: Any) -> Any:
    raised = x if low is None else k.maximum(x, low)
    return raised if high is None else k.minimum(raised, high)


def _clip_grad(p: Pullback) -> Sequence[Value | None]:
    x, low, high = p.args
    has_low, has_high = low.ty != UNIT, high.ty != UNIT
    if has_low and has_high:
        inside = logical_and(greater_equal(x, low), less_equal(x, high))
        to_low = where(logical_and(less(low, high), less(x, low)), p.g, 0.0)
        to_high = where(logical_or(greater(x, high), less(high, low)), p.g, 0.0)
        return where(inside, p.g, 0.0), to_low, to_high
    if has_low:
        return where(greater_equal(x, low), p.g, 0.0), where(less(x, low), p.g, 0.0), None
    return where(less_equal(x, high), p.g, 0.0), None, where(greater(x, high), p.g, 0.0)


def _clip_samples() -> Iterable[Sample]:
    yield Sample((TensorSpec((3, 4)), -0.5, 0.75))
    yield Sample((TensorSpec((3, 4), contiguous=False), None, 0.5))
    yield Sample((TensorSpec(()), -0.5, None))
    yield Sample((TensorSpec((0, 3)), 0.0, 1.0))
    yield Sample((TensorSpec((3, 4)), TensorSpec((4,), low=-1.0, high=0.0), 0.5))
    yield Sample((TensorSpec((2, 3, 4)), TensorSpec((3, 1)), TensorSpec((4,))))
    yield Sample((TensorSpec((5,), "int64", -9, 9), -2, 3))
    yield Sample((TensorSpec((5,), "int64", -9, 9), -2.5, None))
    yield Sample((TensorSpec((), "int64", -9, 9), -2, TensorSpec((), "int64", -9, 9)))
    yield Sample((filled(1.0, 3), 0.0, 1.0), smooth=False)


clip: Final = Op(
    name="clip",
    doc="Each element, not below `min` and not above `max`; either may be left out.",
    params=(
        operand("input", promote=True),
        Param("min", Role.OPERAND, None, promote=True),
        Param("max", Role.OPERAND, None, promote=True),
    ),
    promotion=Promotion.COMMON,
    type_rule=_clip_type,
    lowering=Pointwise(_clip),
    grad=_clip_grad,
    samples=_clip_samples,
)

stop_gradient: Final = Op(
    name="stop_gradient",
    doc="The same elements, held constant by every derivative.",
    params=(operand("input"),),
    type_rule=same_dtype,
    shape=ShapeBehaviour.IDENTITY,
    layouts=Layouts.ALIKE,
    lowering=Pointwise(lambda k, x: x),
    grad=NoGradient("held constant"),
    torch_name="detach",
    samples=numeric_samples,
)

recomputed: Final = Op(
    name="recomputed",
    doc="The same elements, as operands of a computation that is done again: no pass takes it for "
    "the first one.",
    params=(operand("input"),),
    type_rule=same_dtype,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Pointwise(lambda k, x: x),
    grad=lambda p: (p.g,),
    samples=numeric_samples,
)
