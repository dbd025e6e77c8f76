"""Code that torch's losses share: the `reduction`, and tensors compared element by element."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ...ir.dims import product
from ...ir.op import Clash, Pullback, RuleCall, Sample, TensorSpec
from ...ir.rules import broadcast_shapes
from ...ir.types import TensorType, Type, show
from ..primitive.reduce import mean

if TYPE_CHECKING:
    from ..builder import Value

_REDUCTIONS: Final = ("mean", "sum", "none")


def reduced(call: RuleCall, ty: TensorType) -> TensorType:
    """Return the type after the `reduction` that torch's losses take. Raises Clash."""
    reduction = call.attrs["reduction"]
    if reduction not in _REDUCTIONS:
        call.clash(f"`{call.op.name}` knows the reductions mean, sum and none, not {reduction!r}")
    return ty if reduction == "none" else TensorType((), ty.dtype)


def spread(p: Pullback, like: Value) -> Value:
    """Return the cotangent of a reduced loss for each element, in the shape of `like`."""
    if p.attrs["reduction"] == "none":
        return p.g
    if p.attrs["reduction"] == "sum":
        return p.g.expand(like.shape)
    return (p.g / p.g.builder.size(product(like.shape))).expand(like.shape)


def gathered(each: Value, reduction: str) -> Value:
    """Return a loss from that of each element."""
    if reduction == "none":
        return each
    return each.sum() if reduction == "sum" else mean(each)


def paired_type(call: RuleCall) -> Type:
    """Return the type of a loss that compares elements with elements. Raises Stuck or Clash."""
    left, right = call.tensor(0), call.tensor(1)
    try:
        shape = broadcast_shapes(call, [left.shape, right.shape])
    except Clash:
        call.clash(f"`{call.op.name}` cannot compare {show(left)} with {show(right)}", 0, 1)
    if len(left.shape) != len(right.shape):
        # (N, 1) against (N,) would give (N, N) losses: nearly always a mistake.
        call.clash(
            f"`{call.op.name}` takes tensors of one rank, not {show(left)} and {show(right)}",
            0,
            1,
            help="drop or add the dim that differs: relay.squeeze(x, dim=-1)",
        )
    return reduced(call, TensorType(shape, left.dtype))


def paired_samples(low: float = -2.0, high: float = 2.0) -> Iterable[Sample]:
    """Return inputs and targets between `low` and `high`, under every reduction."""
    target = TensorSpec((3, 4), low=low, high=high)
    yield Sample((TensorSpec((3, 4)), target))
    yield Sample((TensorSpec((3, 4)), target), {"reduction": "sum"})
    yield Sample((TensorSpec((3, 4)), target), {"reduction": "none"})
    yield Sample((TensorSpec(()), TensorSpec((), low=low, high=high)))
    yield Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4, 3), low=low, high=high)))
    yield Sample((TensorSpec((0, 3)), TensorSpec((0, 3), low=low, high=high)), {"reduction": "sum"})
