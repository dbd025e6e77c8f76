"""Passes in blocks of rows, for operands that lie along the rows instead of the lanes.

In `transpose(x, 0, 1) + y` neighbouring lanes read `x` in lines of memory of their own, each of
which has the elements of several rows. So the vectors of a few rows are computed one below the
other, while the lines are in the first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ...ir.dims import ONE, ZERO, Dim, product
from ...kernels.places import step_along
from ...kernels.plans.terms import Terms
from .block import Block
from .emit import KernelText
from .loops import Nest, indented, recovered

ROWS: Final = 16
"""The rows of a block: a line of memory has as many float32."""


def has_transposed(terms: Terms, offsets: Sequence[Dim], coordinates: Sequence[str]) -> bool:
    """Return whether elements that lie one behind the other are read along the last coordinate but
    one, and such that lie apart along the last."""
    if len(coordinates) < _DIMS:
        return False
    row, lane = coordinates[-_DIMS:]
    return any(
        step_along(offset, row) == ONE
        and step_along(offset, lane) not in (None, ZERO, ONE)
        and not list(terms.found(offset))
        for offset in offsets
    )


_DIMS: Final = 2


def count_of_blocks(kernel: KernelText, nest: Nest) -> str:
    """Return the text of how many blocks there are."""
    *around, rows, _ = nest.sizes
    return str(kernel.dims.size(product(tuple(around)) * ((rows + (ROWS - 1)) // ROWS)))


def in_blocks(kernel: KernelText, nest: Nest, inside: Callable[[Block], None]) -> list[str]:
    """Return the lines of a loop over the blocks from `begin` to `end`; `inside` writes what is
    done for each vector of places."""
    axes = nest.axes(kernel)
    *around, row, lane = nest.coordinates
    outer, *nested = nest.levels(kernel, axes, len(around))
    columns = Block(kernel, axes, lane, (nested or [outer])[-1], lane)
    each = Block(kernel, axes, lane, columns, row)
    inside(each)
    high, wide = map(kernel.dims.size, nest.sizes[-_DIMS:])
    name, index = nest.names[-_DIMS:]
    block, blocks, top, bottom, number = map(
        kernel.fresh, ("block", "blocks", "top", "bottom", "number")
    )
    inside_row = f"{block} % {blocks}" if around else block
    lines = [
        *([f"const int64_t {number} = {block} / {blocks};"] if around else []),
        f"const int64_t {top} = {inside_row} * {ROWS};",
        f"const int64_t {bottom} = relay_least_i64({high}, {top} + {ROWS});",
        *recovered(kernel, number, nest.names[:-_DIMS], nest.sizes[:-_DIMS]),
        *(line for level in nested for line in level.lines),
    ]
    vectors = [
        *columns.lines,
        f"for (int64_t {name} = {top}; {name} < {bottom}; {name}++) {{",
        *indented(each.lines),
        "}",
    ]
    return [
        *outer.lines,
        *([f"const int64_t {blocks} = ({high} + {ROWS - 1}) / {ROWS};"] if around else []),
        f"for (int64_t {block} = begin; {block} < end; {block}++) {{",
        *indented(lines),
        *indented(kernel.over(index, "0", str(wide), vectors)),
        "}",
    ]
