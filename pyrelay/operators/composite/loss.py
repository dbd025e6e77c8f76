"""Losses against chances: of a yes, and of a distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Clash,
    Library,
    MadeOf,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import broadcast_shapes, expect, floating
from ...ir.types import TensorType, Type, show
from ..primitive import activation, arithmetic, compare, create, math
from ..shared.operands import is_given
from ..shared.precision import widened
from ..shared.reduction import gathered, paired_samples, reduced, spread

if TYPE_CHECKING:
    from ..builder import Value


def _bce_type(call: RuleCall) -> Type:
    source, target = call.tensor(0), call.tensor(1)
    expect(
        call,
        1,
        TensorType(source.shape, target.dtype),
        f"`{call.op.name}` takes a target of the shape of the input",
    )
    for i in (2, 3):
        if call.given(i):
            _weight_fits(call, i, source)
    return reduced(call, source)


def _weight_fits(call: RuleCall, i: int, source: TensorType) -> None:
    weight = call.tensor(i)
    try:
        shape = broadcast_shapes(call, [source.shape, weight.shape])
        fits = len(shape) == source.rank
        for have, want in zip(shape, source.shape, strict=False):
            call.solver.unify_dims(have, want)
    except Clash:
        fits = False
    if not fits:
        call.clash(
            f"`{call.op.name}` cannot broadcast its {call.operand_name(i)} to {show(source)}", 0, i
        )


def _bce(torch: Any, x: Any, target: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    return torch.nn.functional.binary_cross_entropy_with_logits(
        x, target, weight, reduction=reduction, pos_weight=pos_weight
    )


def _bce_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, target = widened(args[0]), widened(args[1])
    # softplus(-x), whose exponential never overflows.
    behind = math.log1p(math.exp(-arithmetic.abs_(x))) + arithmetic.maximum(-x, 0.0)
    if is_given(args[3]):
        behind = behind * (1.0 + (widened(args[3]) - 1.0) * target)
    each = (1.0 - target) * x + behind
    if is_given(args[2]):
        each = each * widened(args[2])
    return gathered(each, attrs["reduction"]).cast(args[0].dtype)


def _bce_grad(p: Pullback) -> tuple[Value | None, ...]:
    # loss = (1 - t) x + (1 + (w - 1) t) softplus(-x), w the weight of positives
    x, target, weight, pos_weight = p.args
    g = spread(p, x)
    scaled = g * weight if is_given(weight) else g
    behind = activation.softplus(-x)
    if not is_given(pos_weight):
        to_x, to_target = activation.sigmoid(x) - target, -x
        to_positive = None
    else:
        factor = 1.0 + (pos_weight - 1.0) * target
        to_x = (1.0 - target) - factor * activation.sigmoid(-x)
        to_target = (pos_weight - 1.0) * behind - x
        to_positive = (scaled * target * behind).sum_to(pos_weight.shape)
    to_weight = None
    if is_given(weight):
        factor = 1.0 if not is_given(pos_weight) else 1.0 + (pos_weight - 1.0) * target
        to_weight = (g * ((1.0 - target) * x + behind * factor)).sum_to(weight.shape)
    return scaled * to_x, scaled * to_target, to_weight, to_positive


binary_cross_entropy_with_logits: Final = Op(
    name="binary_cross_entropy_with_logits",
    doc="The cross entropy of `sigmoid(input)` against chances, computed without overflow.",
    params=(
        operand("input", promote=True),
        operand("target", promote=True),
        optional("weight"),
        optional("pos_weight"),
        attribute("reduction", "mean", kinds.text),
    ),
    promotion=Promotion.FLOAT,
    type_rule=_bce_type,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_bce, fused=MadeOf(_bce_code)),
    grad=_bce_grad,
    torch_name="nn.functional.binary_cross_entropy_with_logits",
    samples=lambda: (
        *paired_samples(0.0, 1.0),
        Sample(
            (
                TensorSpec((3, 4)),
                TensorSpec((3, 4), low=0.0, high=1.0),
                TensorSpec((3, 1), low=0.5),
                TensorSpec((4,), low=0.5),
            )
        ),
        Sample(
            (
                TensorSpec((3, 4)),
                TensorSpec((3, 4), low=0.0, high=1.0),
                None,
                TensorSpec((4,), low=0.5),
            ),
            {"reduction": "none"},
        ),
    ),
)


def _kl_type(call: RuleCall) -> Type:
    left, right = floating(call, 0), floating(call, 1)
    expect(call, 1, TensorType(left.shape, right.dtype), "`kl_div` takes tensors of one shape")
    if call.attrs["reduction"] == "batchmean":
        if not left.rank:
            call.clash("`kl_div` with reduction='batchmean' takes a batch", 0)
        return TensorType((), left.dtype)
    return reduced(call, left)


def _kl(torch: Any, x: Any, target: Any, reduction: str, log_target: bool) -> Any:
    if reduction == "mean":  # torch warns that its meaning may change; ours is that of today
        each = torch.nn.functional.kl_div(x, target, reduction="none", log_target=log_target)
        return each.mean()
    return torch.nn.functional.kl_div(x, target, reduction=reduction, log_target=log_target)


def _kl_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, target = map(widened, args)
    if attrs["log_target"]:
        each = math.exp(target) * (target - x)
    else:
        # The limit of t log t at 0 is 0.
        safe = compare.where(compare.equal(target, 0.0), 1.0, target)
        each = target * math.log(safe) - target * x
    if attrs["reduction"] == "batchmean":
        return (each.sum() / x.builder.size(x.shape[0])).cast(args[0].dtype)
    return gathered(each, attrs["reduction"]).cast(args[0].dtype)


def _kl_grad(p: Pullback) -> tuple[Value, Value]:
    x, target = p.args
    by_batch = p.attrs["reduction"] == "batchmean"
    g = p.g / p.g.builder.size(x.shape[0]) if by_batch else spread(p, x)
    if p.attrs["log_target"]:
        chances = math.exp(target)
        return -(chances * g), chances * (target - x + 1.0) * g
    # The limit of t log t at 0 is 0, and torch's derivative of it there is 0 as well.
    positive = compare.greater(target, 0.0)
    safe = compare.where(positive, target, create.ones_like(target))
    zeros = create.zeros_like(target)
    slope = compare.where(positive, math.log(safe) + 1.0, zeros)
    return -(target * g), (slope - x) * g


kl_div: Final = Op(
    name="kl_div",
    doc="The Kullback-Leibler divergence of `target` from `input`, which holds log chances.",
    params=(
        operand("input", promote=True),
        operand("target", promote=True),
        attribute("reduction", "mean", kinds.text),
        attribute("log_target", False, kinds.flag),
    ),
    promotion=Promotion.FLOAT,
    type_rule=_kl_type,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_kl, fused=MadeOf(_kl_code)),
    grad=_kl_grad,
    torch_name="nn.functional.kl_div",
    samples=lambda: (
        *paired_samples(0.2, 1.0),
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4), low=0.2)), {"reduction": "batchmean"}),
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4))), {"log_target": True}),
    ),
)
