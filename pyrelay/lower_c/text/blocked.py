"""Passes in blocks of rows, for operands that lie along the rows instead of the lanes.

In `transpose(x, 0, 1) + y` neighbouring lanes read `x` in lines of memory of their own, each of
which has the elements of several rows. So the vectors of a few rows are computed one below the
other: the square of elements that they read is transposed in registers first, or the lines stay in
the first-level cache where vectors of these elements take several registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from ...ir.dims import ONE, ZERO, Dim, product
from ...ir.types import bool_
from ...kernels.places import step_along
from ...kernels.plans.terms import Access, Term, Terms, is_half
from ...kernels.plans.text import Text, call, infix
from ..math import element_of
from .block import Block
from .emit import KernelText
from .loops import Nest, indented, recovered

ROWS: Final = 16
"""The rows of a block: a line of memory has as many float32."""


def has_transposed(terms: Terms, offsets: Sequence[Dim], coordinates: Sequence[str]) -> bool:
    """Return whether elements that lie one behind the other are read along the last coordinate but
    one, and such that lie apart along the last."""
    return any(_is_transposed(terms, offset, coordinates) for offset in offsets)


def _is_transposed(terms: Terms, offset: Dim, coordinates: Sequence[str]) -> bool:
    if len(coordinates) < _DIMS or list(terms.found(offset)):
        return False
    row, lane = coordinates[-_DIMS:]
    apart = step_along(offset, lane)
    return step_along(offset, row) == ONE and apart not in (None, ZERO, ONE)


_DIMS: Final = 2


def count_of_blocks(kernel: KernelText, nest: Nest) -> str:
    """Return the text of how many blocks there are."""
    *around, rows, _ = nest.sizes
    return str(kernel.dims.size(product(tuple(around)) * ((rows + (ROWS - 1)) // ROWS)))


def in_blocks(
    kernel: KernelText, nest: Nest, roots: Sequence[Term], inside: Callable[[Block], None]
) -> list[str]:
    """Return the lines of a loop over the blocks from `begin` to `end`; `inside` writes what is
    done for each vector of places, from the values of `roots`."""
    axes = nest.axes(kernel)
    *around, row, lane = nest.coordinates
    outer, *nested = nest.levels(kernel, axes, len(around))
    columns = Block(kernel, axes, lane, (nested or [outer])[-1], lane)
    each = Block(kernel, axes, lane, columns, row)
    high, wide = map(kernel.dims.size, nest.sizes[-_DIMS:])
    name, index = nest.names[-_DIMS:]
    block, blocks, top, bottom, number = map(
        kernel.fresh, ("block", "blocks", "top", "bottom", "number")
    )
    at_top = Block(kernel, [replace(a, text=top) if a.coordinate == row else a for a in axes], lane)
    turned: list[str] = []
    for term, access in _squares(kernel, nest.coordinates, roots):
        assert isinstance(access.operand, int)
        operand = kernel.operand_name(access.operand)
        square, value = kernel.fresh(f"{operand}_square"), kernel.fresh(operand)
        step = kernel.dims.whole(step_along(access.offset, lane) or ZERO, at_top.scalar)
        given = (at_top.address(access), step, square, kernel.lanes, f"{bottom} - {top}", "n")
        element = element_of(access.dtype).c
        turned += [
            f"{element} {square}[{ROWS * kernel.lanes}];",
            f"{call(kernel.function('transpose', access.dtype), *map(str, given))};",
        ]
        row_of = infix(Text(square), "+", Text(f"({name} - {top}) * {kernel.lanes}"))
        each.line(each.assigned(value, call(kernel.function("load", access.dtype), row_of), term))
        each.put(term, each.reference(value))
    inside(each)
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
        *turned,
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


def _squares(
    kernel: KernelText, coordinates: Sequence[str], roots: Sequence[Term]
) -> Iterator[tuple[Term, Access]]:
    """Return the loads whose squares are transposed in registers, each vector in one."""
    if kernel.lanes > ROWS:
        return
    for term in kernel.terms.needed(roots):
        access = term.detail
        if not isinstance(access, Access) or isinstance(access.operand, str):
            continue
        is_plain = not term.operands and access.dtype == term.dtype
        is_plain = is_plain and access.dtype != bool_ and not is_half(access.dtype)
        fits = kernel.lanes * element_of(access.dtype).bytes <= kernel.target.register_bytes
        if is_plain and fits and _is_transposed(kernel.terms, access.offset, coordinates):
            yield term, access
