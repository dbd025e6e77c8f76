"""Losses against chances: of a yes, and of a distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Clash,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import broadcast_shapes, expect, floating
from ...ir.types import TensorType, Type, show
from ..declare import composite
from ..primitive import activation, arithmetic, compare, math
from ..shared.operands import is_given
from .reduction import gathered, paired_samples, reduced, spread

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
    for i in range(2, len(call.op.operands)):
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


def _bce_of(
    x: Value, target: Value, weight: Value | None, pos_weight: Value | None, reduction: str
) -> Value:
    # Minus the logarithm of the chance of a yes, whose exponential never overflows.
    behind = -activation.logsigmoid(x)
    if pos_weight is not None:
        behind = behind * (1.0 + (pos_weight - 1.0) * target)
    each = (1.0 - target) * x + behind
    return gathered(each if weight is None else each * weight, reduction)


def _bce_grad(p: Pullback) -> tuple[Value | None, ...]:
    # loss = (1 - t) x + (1 + (w - 1) t) softplus(-x), w the weight of positives
    x, target, weight, pos_weight = p.args
    g = spread(p, x)
    scaled = g * weight if is_given(weight) else g
    behind = activation.softplus(-x)
    if not is_given(pos_weight):
        to_x, to_target = math.sigmoid(x) - target, -x
        to_positive = None
    else:
        factor = 1.0 + (pos_weight - 1.0) * target
        to_x = (1.0 - target) - factor * math.sigmoid(-x)
        to_target = (pos_weight - 1.0) * behind - x
        to_positive = (scaled * target * behind).sum_to(pos_weight.shape)
    to_weight = None
    if is_given(weight):
        factor = 1.0 if not is_given(pos_weight) else 1.0 + (pos_weight - 1.0) * target
        to_weight = (g * ((1.0 - target) * x + behind * factor)).sum_to(weight.shape)
    return scaled * to_x, scaled * to_target, to_weight, to_positive


binary_cross_entropy_with_logits: Final = composite(
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
    body=_bce_of,
    grad=_bce_grad,
    torch=_bce,
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


def _logs(x: Value) -> tuple[Value, Value]:
    """Return the logarithms of chances and of their complements, bounded as torch's are."""
    return arithmetic.maximum(math.log(x), -100.0), arithmetic.maximum(math.log1p(-x), -100.0)


def _bce_of_chances_in_torch(_: Any, x: Any, target: Any, weight: Any, reduction: str) -> Any:
    # torch's own function refuses what is no chance, for which it waits for a GPU.
    yes, no = x.log().clamp(min=-100.0), (-x).log1p().clamp(min=-100.0)
    each = -(target * yes + (1.0 - target) * no)
    each = each if weight is None else each * weight
    return each if reduction == "none" else each.mean() if reduction == "mean" else each.sum()


def _bce_of_chances(x: Value, target: Value, weight: Value | None, reduction: str) -> Value:
    yes, no = _logs(x)
    each = -(target * yes + (1.0 - target) * no)
    return gathered(each if weight is None else each * weight, reduction)


def _bce_of_chances_grad(p: Pullback) -> tuple[Value | None, ...]:
    x, target, weight = p.args
    g, (yes, no) = spread(p, x), _logs(x)
    scaled, to_weight = g, None
    if is_given(weight):
        each = -(target * yes + (1.0 - target) * no)
        scaled, to_weight = g * weight, (g * each).sum_to(weight.shape)
    to_x = (x - target) / arithmetic.maximum(x * (1.0 - x), 1e-12)
    return scaled * to_x, scaled * (no - yes), to_weight


_CHANCES: Final = TensorSpec((3, 4), low=0.1, high=0.9)

binary_cross_entropy: Final = composite(
    name="binary_cross_entropy",
    doc="The cross entropy of chances, such as those of `sigmoid`, against others. Logarithms are "
    "bounded by -100. `binary_cross_entropy_with_logits` is more precise.",
    params=(
        operand("input", promote=True),
        operand("target", promote=True),
        optional("weight"),
        attribute("reduction", "mean", kinds.text),
    ),
    promotion=Promotion.FLOAT,
    type_rule=_bce_type,
    body=_bce_of_chances,
    grad=_bce_of_chances_grad,
    torch=_bce_of_chances_in_torch,
    torch_name="nn.functional.binary_cross_entropy",
    samples=lambda: (
        *(Sample((_CHANCES, _CHANCES), {"reduction": r}) for r in ("mean", "sum", "none")),
        Sample((_CHANCES, _CHANCES, TensorSpec((4,), low=0.5))),
        Sample((TensorSpec((), low=0.1, high=0.9), TensorSpec((), low=0.1, high=0.9))),
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


def _kl_of(x: Value, target: Value, reduction: str, log_target: bool) -> Value:
    if log_target:
        each = math.exp(target) * (target - x)
    else:
        # The limit of t log t at 0 is 0.
        safe = compare.where(compare.equal(target, 0.0), 1.0, target)
        each = target * math.log(safe) - target * x
    if reduction == "batchmean":
        return each.sum() / x.builder.size(x.shape[0])
    return gathered(each, reduction)


kl_div: Final = composite(
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
    body=_kl_of,
    torch=_kl,
    torch_name="nn.functional.kl_div",
    samples=lambda: (
        *paired_samples(0.2, 1.0),
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4), low=0.2)), {"reduction": "batchmean"}),
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4))), {"log_target": True}),
    ),
)
