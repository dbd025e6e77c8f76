"""Images and lines in Relay's layouts, with its paddings."""

from __future__ import annotations

from typing import Any, Final

from ..ir.expr import Expr
from ..operators.primitive import join, view
from . import attributes
from .attributes import Attribute, refuse
from .imported import Emit

TO_FIRST: Final = {
    **dict.fromkeys(("NCW", "NCHW", "NCDHW")),
    "NWC": (0, 2, 1),
    "NHWC": (0, 3, 1, 2),
    "NDHWC": (0, 4, 1, 2, 3),
}
"""For each layout of data, the permutation that brings the channels to dim 1."""
_BACK: Final = {**TO_FIRST, "NHWC": (0, 2, 3, 1), "NDHWC": (0, 2, 3, 4, 1)}
LAYOUTS: Final = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def each(rank: int, value: int) -> Attribute:
    """Build an attribute of a number for each dim of an image, or one for all."""
    return Attribute(attributes.integers, (value,) * rank)


def permuted(e: Emit, x: Expr, order: tuple[int, ...] | None) -> Expr:
    """Build a tensor with its dims in another order; None leaves them."""
    return x if order is None else e.call(view.permute, x, dims=order)


def sides(padding: tuple[int, ...], rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and after each dim of an image."""
    given = padding * rank if len(padding) == 1 else padding
    given = given * 2 if len(given) == rank else given
    if len(given) != 2 * rank:
        refuse(f"needs {2 * rank} numbers as `padding`")
    return given[:rank], given[rank:]


def padded_image(
    e: Emit,
    x: Expr,
    padding: tuple[int, ...],
    rank: int,
    *,
    value: float = 0.0,
    most: tuple[int, ...] = (),
) -> tuple[Expr, Any]:
    """Return a padding that is equal on both sides and at most `most`, which torch wants; any other
    is added to the tensor before."""
    before, after = sides(padding, rank)
    if before == after and all(n <= m for n, m in zip(before, most, strict=False)):
        return x, before
    pairs = zip(reversed(before), reversed(after), strict=True)
    flat = tuple(n for pair in pairs for n in pair)
    return e.call(join.pad, x, pad=flat, mode="constant", value=value), (0,) * rank


def from_first(e: Emit, out: Expr, layout: str, out_layout: str | None) -> Expr:
    """Build a result, whose channels are dim 1, in the layout that the call names, if any, or in
    that of the data."""
    return permuted(e, out, _BACK[out_layout or layout])
