"""Losses that measure how far elements are from their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Library,
    MadeOf,
    Op,
    Param,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.types import Type
from ..primitive import arithmetic, compare
from ..shared.precision import widened
from ..shared.reduction import gathered, paired_samples, paired_type, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..builder import Value


def _loss(
    name: str,
    doc: str,
    each: Callable[[Value, Mapping[str, Any]], Value],
    slope: Callable[[Value, Pullback], Value],
    *extra: Param,
    refuse: Callable[[RuleCall], None] = lambda call: None,
    samples: Sequence[Sample] = (),
) -> Op:
    """Return the loss of the difference of input and target that torch has under a name; `each` is
    it of one difference, `slope` its derivative there; `refuse` clashes where an attribute of
    `extra` is wrong."""

    def type_rule(call: RuleCall) -> Type:
        refuse(call)
        return paired_type(call)

    def body(torch: Any, x: Any, target: Any, reduction: str, *rest: Any) -> Any:
        x, target = torch.broadcast_tensors(x, target)
        named = {p.name: v for p, v in zip(extra, rest, strict=True)}
        return getattr(torch.nn.functional, name)(x, target, reduction=reduction, **named)

    def code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
        x, target = map(widened, args)
        return gathered(each(x - target, attrs), attrs["reduction"]).cast(args[0].dtype)

    def gradient(p: Pullback) -> tuple[Value, Value]:
        x, target = p.args
        at = slope(x - target, p)
        found = at * spread(p, at)
        return found.sum_to(x.shape), (-found).sum_to(target.shape)

    return Op(
        name=name,
        doc=doc,
        params=(
            operand("input", promote=True),
            operand("target", promote=True),
            attribute("reduction", "mean", kinds.text),
            *extra,
        ),
        promotion=Promotion.FLOAT,
        type_rule=type_rule,
        shape=ShapeBehaviour.COMPOSITE,
        lowering=Library(body, fused=MadeOf(code)),
        grad=gradient,
        torch_name=f"nn.functional.{name}",
        samples=lambda: (*paired_samples(), *samples),
    )


_PAIR: Final = (TensorSpec((3, 4)), TensorSpec((3, 4)))

mse_loss: Final = _loss(
    "mse_loss",
    "The squared difference, averaged over all elements unless `reduction` says otherwise.",
    lambda difference, _: difference * difference,
    lambda difference, _: difference * 2.0,
)

l1_loss: Final = _loss(
    "l1_loss",
    "The absolute difference, averaged over all elements unless `reduction` says otherwise.",
    lambda difference, _: arithmetic.abs_(difference),
    lambda difference, _: arithmetic.sign(difference),
)


def _clipped(difference: Value, limit: float) -> Value:
    return arithmetic.minimum(arithmetic.maximum(difference, -limit), limit)


def _bowl(difference: Value, limit: float) -> Value:
    """Return half the square up to a limit, and from there on the straight line that continues
    it."""
    size = arithmetic.abs_(difference)
    line = (size - 0.5 * limit) * limit
    return compare.where(compare.less(size, limit), difference * difference * 0.5, line)


def _smooth_each(difference: Value, attrs: Mapping[str, Any]) -> Value:
    beta = attrs["beta"]
    return arithmetic.abs_(difference) if beta == 0 else _bowl(difference, beta) / beta


def _check_beta(call: RuleCall) -> None:
    if call.attrs["beta"] < 0:
        call.clash(f"`smooth_l1_loss` takes a beta of at least 0, not {call.attrs['beta']}")


def _smooth_slope(difference: Value, p: Pullback) -> Value:
    beta = p.attrs["beta"]
    return arithmetic.sign(difference) if beta == 0 else _clipped(difference, beta) / beta


smooth_l1_loss: Final = _loss(
    "smooth_l1_loss",
    "The squared difference over `2 * beta` below `beta`, the absolute one less `beta / 2` above.",
    _smooth_each,
    _smooth_slope,
    attribute("beta", 1.0, kinds.real),
    refuse=_check_beta,
    samples=(Sample(_PAIR, {"beta": 0.25}), Sample(_PAIR, {"beta": 0.0})),
)


def _check_delta(call: RuleCall) -> None:
    if call.attrs["delta"] <= 0:
        call.clash(f"`huber_loss` takes a delta above 0, not {call.attrs['delta']}")


huber_loss: Final = _loss(
    "huber_loss",
    "Half the squared difference below `delta`, `delta` times the absolute one less `delta / 2` "
    "above.",
    lambda difference, attrs: _bowl(difference, attrs["delta"]),
    lambda difference, p: _clipped(difference, p.attrs["delta"]),
    attribute("delta", 1.0, kinds.real),
    refuse=_check_delta,
    samples=(Sample(_PAIR, {"delta": 0.5}),),
)
