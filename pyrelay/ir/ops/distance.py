"""Losses that measure how far elements are from their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..op import (
    Effect,
    Library,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ..types import Type
from . import arithmetic
from .reduction import paired_samples, paired_type, spread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..build import Value


def _mse_grad(p: Pullback) -> tuple[Value, Value]:
    x, target = p.args
    difference = x - target
    each = difference * 2.0 * spread(p, difference)
    return each.sum_to(x.shape), (-each).sum_to(target.shape)


def _mse_loss(torch: Any, x: Any, target: Any, reduction: str) -> Any:
    x, target = torch.broadcast_tensors(x, target)
    return torch.nn.functional.mse_loss(x, target, reduction=reduction)


mse_loss: Final = Op(
    name="mse_loss",
    doc="The squared difference, averaged over all elements unless `reduction` says otherwise.",
    params=(
        operand("input", promote=True),
        operand("target", promote=True),
        attribute("reduction", "mean"),
    ),
    promotion=Promotion.FLOAT,
    type_rule=paired_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_mse_loss),
    grad=_mse_grad,
    hidden=(),
    hyper=(),
    torch_name="nn.functional.mse_loss",
    samples=paired_samples,
)


def _towards(p: Pullback, slope: Value) -> tuple[Value, Value]:
    """Give both cotangents of a loss of the difference, from its slope there."""
    x, target = p.args
    each = slope * spread(p, slope)
    return each.sum_to(x.shape), (-each).sum_to(target.shape)


def _l1_loss(torch: Any, x: Any, target: Any, reduction: str) -> Any:
    x, target = torch.broadcast_tensors(x, target)
    return torch.nn.functional.l1_loss(x, target, reduction=reduction)


l1_loss: Final = Op(
    name="l1_loss",
    doc="The absolute difference, averaged over all elements unless `reduction` says otherwise.",
    params=(
        operand("input", promote=True),
        operand("target", promote=True),
        attribute("reduction", "mean"),
    ),
    promotion=Promotion.FLOAT,
    type_rule=paired_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_l1_loss),
    grad=lambda p: _towards(p, arithmetic.sign(p.args[0] - p.args[1])),
    hidden=(),
    hyper=(),
    torch_name="nn.functional.l1_loss",
    samples=paired_samples,
)


def _clipped(difference: Value, limit: float) -> Value:
    return arithmetic.minimum(arithmetic.maximum(difference, -limit), limit)


def _smooth_type(call: RuleCall) -> Type:
    if call.attrs["beta"] < 0:
        call.clash(f"`smooth_l1_loss` takes a beta of at least 0, not {call.attrs['beta']}")
    return paired_type(call)


def _smooth_l1_loss(torch: Any, x: Any, target: Any, reduction: str, beta: float) -> Any:
    x, target = torch.broadcast_tensors(x, target)
    return torch.nn.functional.smooth_l1_loss(x, target, reduction=reduction, beta=beta)


def _smooth_grad(p: Pullback) -> tuple[Value, Value]:
    difference, beta = p.args[0] - p.args[1], p.attrs["beta"]
    if beta == 0:
        return _towards(p, arithmetic.sign(difference))
    return _towards(p, _clipped(difference, beta) / beta)


def _smooth_samples() -> Iterable[Sample]:
    yield from paired_samples()
    yield Sample((TensorSpec((3, 4)), TensorSpec((3, 4))), {"beta": 0.25})
    yield Sample((TensorSpec((3, 4)), TensorSpec((3, 4))), {"beta": 0.0})


smooth_l1_loss: Final = Op(
    name="smooth_l1_loss",
    doc="The squared difference over `2 * beta` below `beta`, the absolute one less `beta / 2` "
    "above.",
    params=(
        operand("input", promote=True),
        operand("target", promote=True),
        attribute("reduction", "mean"),
        attribute("beta", 1.0, float),
    ),
    promotion=Promotion.FLOAT,
    type_rule=_smooth_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_smooth_l1_loss),
    grad=_smooth_grad,
    hidden=(),
    hyper=(),
    torch_name="nn.functional.smooth_l1_loss",
    samples=_smooth_samples,
)


def _huber_type(call: RuleCall) -> Type:
    if call.attrs["delta"] <= 0:
        call.clash(f"`huber_loss` takes a delta above 0, not {call.attrs['delta']}")
    return paired_type(call)


def _huber_loss(torch: Any, x: Any, target: Any, reduction: str, delta: float) -> Any:
    x, target = torch.broadcast_tensors(x, target)
    return torch.nn.functional.huber_loss(x, target, reduction=reduction, delta=delta)


huber_loss: Final = Op(
    name="huber_loss",
    doc="Half the squared difference below `delta`, `delta` times the absolute one less "
    "`delta / 2` above.",
    params=(
        operand("input", promote=True),
        operand("target", promote=True),
        attribute("reduction", "mean"),
        attribute("delta", 1.0, float),
    ),
    promotion=Promotion.FLOAT,
    type_rule=_huber_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_huber_loss),
    grad=lambda p: _towards(p, _clipped(p.args[0] - p.args[1], p.attrs["delta"])),
    hidden=(),
    hyper=(),
    torch_name="nn.functional.huber_loss",
    samples=lambda: (
        *paired_samples(),
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4))), {"delta": 0.5}),
    ),
)
