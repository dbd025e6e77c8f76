"""Losses that measure how far elements are from their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import Op, Param, Promotion, RuleCall, Sample, TensorSpec, attribute, operand
from ...ir.types import Type
from ..declare import composite
from ..primitive import arithmetic, compare
from .reduction import gathered, paired_samples, paired_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..builder import Value


def _loss(
    name: str,
    doc: str,
    each: Callable[..., Value],
    *extra: Param,
    refuse: Callable[[RuleCall], None] = lambda call: None,
    samples: Sequence[Sample] = (),
) -> Op:
    """Return the loss of the difference of input and target that torch has under a name; `each` is
    it of one difference; `refuse` clashes where an attribute of `extra` is wrong."""

    def type_rule(call: RuleCall) -> Type:
        refuse(call)
        return paired_type(call)

    def torch_loss(torch: Any, x: Any, target: Any, reduction: str, *rest: Any) -> Any:
        x, target = torch.broadcast_tensors(x, target)
        named = {p.name: v for p, v in zip(extra, rest, strict=True)}
        return getattr(torch.nn.functional, name)(x, target, reduction=reduction, **named)

    return composite(
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
        body=lambda x, target, reduction, **attrs: gathered(each(x - target, **attrs), reduction),
        torch=torch_loss,
        torch_name=f"nn.functional.{name}",
        samples=lambda: (*paired_samples(), *samples),
    )


_PAIR: Final = (TensorSpec((3, 4)), TensorSpec((3, 4)))

mse_loss: Final = _loss(
    "mse_loss",
    "The squared difference, averaged over all elements unless `reduction` says otherwise.",
    lambda difference: arithmetic.square(difference),
)

l1_loss: Final = _loss(
    "l1_loss",
    "The absolute difference, averaged over all elements unless `reduction` says otherwise.",
    lambda difference: arithmetic.abs_(difference),
)


def _bowl(difference: Value, limit: float) -> Value:
    """Return half the square up to a limit, and from there on the straight line that continues
    it."""
    size = arithmetic.abs_(difference)
    line = (size - 0.5 * limit) * limit
    return compare.where(compare.less(size, limit), arithmetic.square(difference) * 0.5, line)


def _smooth(difference: Value, beta: float) -> Value:
    return arithmetic.abs_(difference) if beta == 0 else _bowl(difference, beta) / beta


def _check_beta(call: RuleCall) -> None:
    if call.attrs["beta"] < 0:
        call.clash(f"`smooth_l1_loss` takes a beta of at least 0, not {call.attrs['beta']}")


smooth_l1_loss: Final = _loss(
    "smooth_l1_loss",
    "The squared difference over `2 * beta` below `beta`, the absolute one less `beta / 2` above.",
    _smooth,
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
    lambda difference, delta: _bowl(difference, delta),
    attribute("delta", 1.0, kinds.real),
    refuse=_check_delta,
    samples=(Sample(_PAIR, {"delta": 0.5}),),
)
