"""Sliding windows: how many there are, and how paddings are written.

Convolutions and pools agree on `n` elements, a kernel of `k` of them `dilation` apart, moved by
`stride` over the tensor padded on both sides.
"""

from __future__ import annotations

from typing import Any

from ...ir.bounds import minimum
from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim, DimHole
from ...ir.op import RuleCall, Stuck


def window_count(
    size: Dim, kernel: Dim | int, stride: int, padding: Dim | int, dilation: int
) -> Dim:
    """Return the number of places of a window; `padding` is that of both sides together."""
    reach = (Dim.of(kernel) - 1) * dilation + 1
    return (size + padding - reach) // stride + 1


def check_count(call: RuleCall, count: Dim, size: Dim, kernel: Dim | int) -> Dim:
    """Return the count back. Raises Clash when the window is known not to fit."""
    value = count.constant
    if value is not None and value <= 0:
        call.clash(
            f"`{call.op.name}` has a window of {kernel} that does not fit a size of {size}", 0
        )
    return count


def known(call: RuleCall, dim: Dim, what: str, index: int) -> int:
    """Return a size that must be a number. Raises Stuck or Clash."""
    dim = call.solver.resolve_dim(dim)
    if dim.constant is not None:
        return dim.constant
    for atom in dim.atoms():
        if isinstance(atom, DimHole):
            raise Stuck(Dim.atom(atom))
    return call.clash(f"`{call.op.name}` needs a number as {what}, not the size {dim}", index)


def padding_of(count: int) -> kinds.Converter:
    """Return the kind of the paddings over `count` dims: "same", "valid", or a tuple of numbers."""
    kind = kinds.at_least(0, kinds.each_of(count))

    def convert(value: Any) -> Any:
        if value in ("same", "valid"):
            return value
        try:
            return kind(value)
        except TypeError as error:
            raise TypeError(f'{error}, or "same", or "valid"') from None

    return convert


def same_padding(kernel: int, dilation: int) -> tuple[int, int]:
    """Return the padding before and after that keeps a size, as torch splits an odd one."""
    total = dilation * (kernel - 1)
    return total // 2, total - total // 2


def pooled(call: RuleCall, shape: tuple[Dim, ...], n: int) -> tuple[Dim, ...]:
    """Return the shape after a pool over the last `n` dims, from its attributes. Raises Clash."""
    kernel = call.attrs["kernel_size"]
    windows = zip(
        shape[-n:],
        kernel,
        call.attrs["stride"] or kernel,
        call.attrs["padding"],
        call.attrs.get("dilation", (1,) * n),
        strict=True,
    )
    sizes: list[Dim] = []
    for size, k, s, p, d in windows:
        if isinstance(p, int) and isinstance(k, int) and 2 * p > k:
            call.clash(f"`{call.op.name}` takes at most half its window {k} as padding, not {p}")
        count = window_count(size, k, s, 2 * p, d)
        if call.attrs["ceil_mode"]:
            count = _rounded_up(size, k, s, p, d)
        sizes.append(check_count(call, count, size, k))
    return (*shape[:-n], *sizes)


def _rounded_up(size: Dim, kernel: int, stride: int, padding: int, dilation: int) -> Dim:
    """Return the number of windows when the last may hang over; it starts within the tensor."""
    count = window_count(size + (stride - 1), kernel, stride, 2 * padding, dilation)
    starts = (size + padding - 1) // stride + 1
    return minimum(count, starts)
