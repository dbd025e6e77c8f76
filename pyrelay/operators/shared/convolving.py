"""Code that convolutions share, above all their type rules.

The sizes of a result are floordiv polynomials in those of the operand, so they hold for images of
any size; channels flow between the operand and its weight, in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim
from ...ir.op import Clash, Pullback, RuleCall
from ...ir.rules import expect, parameter_dtype, with_rank
from ...ir.types import TensorType, Type, show
from .window import check_count, known, same_padding, window_count

if TYPE_CHECKING:
    from ..builder import Value

_IMAGE_LAYOUT: Final = {
    1: "(batch, channels, length)",
    2: "(batch, channels, height, width)",
    3: "(batch, channels, depth, height, width)",
}


def _spatial(call: RuleCall) -> int:
    """Return the number of dims that a window moves along, from the operator's name."""
    return int(call.op.name[-2])


def image_type(call: RuleCall, n: int) -> TensorType:
    """Return the type of the operand, which has a batch dim or none. Raises Clash."""
    ty = call.tensor(0)
    if ty.rank in (n + 1, n + 2):
        return ty
    advice = None
    if ty.rank == n:
        advice = "add the channel dim: relay.unsqueeze(x, dim=0), and a batch dim if there is one"
    return call.clash(
        f"`{call.op.name}` takes a tensor {_IMAGE_LAYOUT[n]}, not {show(ty)}", 0, help=advice
    )


def check_channels(call: RuleCall, have: Dim, want: Dim) -> None:
    """Make the channels of the operand those that its weight takes. Raises Clash."""
    try:
        call.solver.unify_dims(have, want)
    except Clash:
        groups = call.attrs["groups"]
        parts = f" in {groups} groups" if groups != 1 else ""
        call.clash(f"`{call.op.name}` got {have} channels, its weight takes {want}{parts}", 0, 1)


def _padding(call: RuleCall, kernel: Sequence[Dim]) -> list[Dim]:
    """Return the padding of both sides together, per spatial dim."""
    padding, strides = call.attrs["padding"], call.attrs["stride"]
    if padding == "valid":
        return [Dim.of(0)] * len(kernel)
    if padding == "same":
        if any(s != 1 for s in strides):
            call.clash(f"`{call.op.name}` with padding='same' has stride 1")
        what = "the kernel size for padding='same'"
        counts = [known(call, k, what, 1) for k in kernel]
        return [Dim.of((k - 1) * d) for k, d in zip(counts, call.attrs["dilation"], strict=True)]
    if isinstance(padding, str):
        call.clash(f"`{call.op.name}` knows padding 'same' and 'valid', not '{padding}'")
    return [Dim.of(p) * 2 for p in padding]


def conv_type(call: RuleCall) -> Type:
    """Return the type of a convolution. Raises Stuck or Clash."""
    n = _spatial(call)
    source, weight = image_type(call, n), with_rank(call, 1, n + 2)
    batch, channels, sizes = source.shape[: -n - 1], source.shape[-n - 1], source.shape[-n:]
    out, groups, kernel = weight.shape[0], call.attrs["groups"], weight.shape[2:]
    check_channels(call, channels, weight.shape[1] * groups)
    if out.constant is not None and out.constant % groups:
        call.clash(f"`{call.op.name}` cannot split {out} channels into {groups} groups", 1)
    if call.given(2):
        message = f"`{call.op.name}` takes one bias per channel"
        expect(call, 2, TensorType((out,), source.dtype), message)
    counts = [
        check_count(call, window_count(size, k, s, p, d), size, k)
        for size, k, s, p, d in zip(
            sizes,
            kernel,
            call.attrs["stride"],
            _padding(call, kernel),
            call.attrs["dilation"],
            strict=True,
        )
    ]
    return TensorType((*batch, out, *counts), source.dtype)


def conv_weight(call: RuleCall) -> TensorType:
    """Return the type of the hidden weight of a convolution. Raises Stuck or Clash."""
    n = _spatial(call)
    channels = image_type(call, n).shape[-n - 1]
    kernel = kernel_size(call, n)
    groups, out = call.attrs["groups"], Dim.of(call.attrs["out_channels"])
    if channels.constant is not None and channels.constant % groups:
        call.clash(f"`{call.op.name}` cannot split {channels} channels into {groups} groups", 0)
    return TensorType((out, channels // groups, *kernel), parameter_dtype(call))


def kernel_size(call: RuleCall, n: int) -> tuple[Dim, ...]:
    """Return the kernel of a convolution whose weight is hidden, one size per spatial dim."""
    items = kinds.sizes(call.attrs["kernel_size"])
    return tuple(Dim.of(k) for k in (items * n if len(items) == 1 else items))


def conv_bias(call: RuleCall) -> TensorType:
    """Return the type of the hidden bias of a convolution. Raises Stuck or Clash."""
    return TensorType((Dim.of(call.attrs["out_channels"]),), parameter_dtype(call))


def batched(x: Value, rank: int) -> Value:
    """Return a tensor with a batch dim, if it has none a new one of size 1."""
    return x if x.rank == rank else x.unsqueeze(0)


def window_attrs(p: Pullback) -> dict[str, Any]:
    """Return the attributes that a convolution shares with its derivatives."""
    return {k: p.attrs[k] for k in ("stride", "padding", "dilation", "groups")}


def padded(torch: Any, x: Any, weight: Any, padding: Any, dilation: tuple[int, ...]) -> Any:
    """Return the operand of a convolution, and the padding left to do as a tuple: torch warns of a
    `same` that is uneven."""
    if padding == "valid":
        return x, (0,) * len(dilation)
    if padding != "same":
        return x, padding
    sides = [same_padding(weight.shape[i + 2], d) for i, d in enumerate(dilation)]
    if all(before == after for before, after in sides):
        return x, tuple(before for before, _ in sides)
    edges = [side for pair in reversed(sides) for side in pair]
    return torch.nn.functional.pad(x, edges), (0,) * len(dilation)


def those_wanted(found: Any, wanted: tuple[bool, ...]) -> Any:
    """Return those of the three gradients of a convolution that are wanted."""
    if all(wanted):
        return found
    if wanted == (True, False, True):
        return found[0], found[2]
    first = wanted.index(True)
    return found[first : first + sum(wanted)]
