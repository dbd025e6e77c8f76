"""How a sum of products is cut: sizes of tiles, and which of two ways its blocks are multiplied.

Blocks of 16 rows, columns and products or more go to the units that multiply matrices. Where there
are few rows or columns, or the dtype is none of theirs, products are made one by one and added:
then a block need not be larger than what is there, and there are programs enough to read the other
operand as fast as memory gives it.
"""

from __future__ import annotations

from typing import Final, final

from ..dataclass import dataclass
from ..ir.dims import Dim
from ..kernels.contraction_axes import Sorts
from .kernel import Config

FEW: Final = 8
"""So many rows or columns are few. Twice as many fill the smallest block."""

_LARGEST: Final = 128
_SMALLEST: Final = 16
"""A device multiplies no fewer rows, columns and products at once."""
_ACCUMULATED: Final = 128 * 128
"""So many elements of sums a program keeps at most."""
_AT_ONCE: Final = 4096
"""So many products a program makes at once, where it makes them one by one."""


@final
@dataclass(frozen=True, slots=True)
class Manner:
    """A way to multiply: `is_blocks` is by the units for matrices; `rows` and `columns` are the
    most that there may be, where that is known to be few."""

    is_blocks: bool
    rows: int | None = None
    columns: int | None = None

    def limits(self, sorts: Sorts) -> tuple[tuple[Dim, int], ...]:
        """Return the counts that must not be exceeded, as far as only the run knows them."""
        pairs = ((sorts.rows.count, self.rows), (sorts.columns.count, self.columns))
        return tuple((d, n) for d, n in pairs if n is not None and d.constant is None)


def manners(sorts: Sorts, *, has_blocks: bool) -> tuple[Manner, ...]:
    """Return the ways to multiply, the first of which whose limits hold is to be taken."""
    last = Manner(has_blocks)
    found: list[Manner] = []
    for few in (1, FEW):
        for at_most in (Manner(False, rows=few), Manner(False, columns=few)):
            count = sorts.rows.count if at_most.rows else sorts.columns.count
            if count.constant is None:
                found.append(at_most)
            elif count.constant <= few:
                return (*found, at_most)
    return (*found, last)


def configs_of(
    manner: Manner, sorts: Sorts, sums: int, *, has_whole_rows: bool
) -> tuple[Config, ...]:
    """Return sizes of tiles for so many sums over the same places, none larger than the result
    where its size is known: large tiles read operands less often, small ones are more programs. A
    tile may have to hold whole rows of the result."""
    found: dict[Config, None] = {}
    counts = (sorts.rows.count, sorts.columns.count, sorts.summed.count)
    least = _SMALLEST if manner.is_blocks else 1
    known = [_block(c, least) for c in counts]
    for m, n, k, warps, stages in _BLOCKS if manner.is_blocks else _one_by_one(manner):
        rows, columns = min(m, known[0]), known[1] if has_whole_rows else min(n, known[1])
        if rows * columns * sums > _ACCUMULATED:
            continue
        sizes = (rows, columns, min(k, max(known[2], _SMALLEST)))
        named = zip(("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP"), (*sizes, 8), strict=True)
        found[Config(tuple(named), warps, stages)] = None
    return tuple(found)


_BLOCKS: Final = (
    (64, 64, 32, 4, 3),
    (128, 128, 32, 8, 3),
    (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4),
    (64, 32, 32, 4, 3),
    (32, 32, 64, 4, 4),
    (16, 64, 64, 2, 4),
)
"""Rows, columns and products of a tile, warps and stages. A tile of 64 x 64 fills a device from
products of about 1,000 x 1,000 on, which is where products of our own pay."""


def _one_by_one(manner: Manner) -> list[tuple[int, int, int, int, int]]:
    """Return tiles for products that are made one by one: long ones, that much is read at once."""
    found: list[tuple[int, int, int, int, int]] = []
    for other in (32, 16, 64):
        if manner.rows is not None:
            m, n = power_of_two(manner.rows), other
        elif manner.columns is not None:
            m, n = other, power_of_two(manner.columns)
        else:
            m, n = other // 2, other // 2
        k = max(_SMALLEST, min(_LARGEST, _AT_ONCE // (m * n)))
        found.append((m, n, k, 4, 1))
    return found


def _block(count: Dim, least: int) -> int:
    """Return the least block that covers a count, if that is known, within limits."""
    size = count.constant
    if size is None:
        return _LARGEST
    return min(_LARGEST, max(least, power_of_two(size)))


def power_of_two(size: int) -> int:
    """Return the smallest power of two that is not below a size."""
    return 1 << max(0, size - 1).bit_length()
