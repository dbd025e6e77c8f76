"""Block sizes of passes with reductions.

A program should have some thousands of elements in flight: fewer do not hide the latency of memory,
more do not fit into registers. Where the last dim of the domain is reduced (rows), blocks are as
long as can be along it; where it is kept (columns), neighbouring columns are read together.
"""

from __future__ import annotations

from typing import Final

from ..ir.dims import Dim
from .kernel import Config

_ELEMENTS: Final = 1024
"""How many elements a program takes at least, rows permitting."""
_PER_WARP: Final = 256
_MOST_WARPS: Final = 16
_MOST_ROWS: Final = 128
_FEW: Final = 128
_COLUMNS: Final = 32
"""So many neighbouring float32 columns fill a line of memory."""


def longest_block(is_column: bool) -> int:
    """Give how long a row may be that is one block."""
    return 128 if is_column else 16384


def longest_loop(is_column: bool) -> int:
    """Give how long the rows may be that one program goes through, where there are few."""
    return 2048 if is_column else 16384


def few_rows(kept: Dim, *, is_column: bool) -> bool:
    """Tell whether there are so few rows that a program for each does not fill a device."""
    count = kept.constant
    return count is not None and count < _FEW * (64 if is_column else 1)


def piece_unit(is_column: bool) -> int:
    """Give how many elements of a row there are in a piece, or a multiple of it."""
    return 256 if is_column else 2048


def one_block_configs(kept: Dim, longest: int, *, is_column: bool) -> tuple[Config, ...]:
    """Give configurations for rows of at most so many elements."""
    along = power_of_two(longest)
    rows = min(_MOST_ROWS, max(_COLUMNS if is_column else 1, _ELEMENTS // along))
    choices = [rows, 2 * rows, max(1, rows // 2)]
    return _distinct(kept, [(r, along) for r in choices if r * along <= 16384])


def loop_configs(kept: Dim, *, is_column: bool) -> tuple[Config, ...]:
    """Give configurations for rows that take several blocks."""
    if is_column:
        return _distinct(kept, [(64, 32), (32, 64), (128, 16)])
    return _distinct(kept, [(1, 2048), (1, 4096), (1, 1024)])


def _distinct(kept: Dim, sizes: list[tuple[int, int]]) -> tuple[Config, ...]:
    most = kept.constant
    found: dict[Config, None] = {}
    for rows, along in sizes:
        rows = rows if most is None else min(rows, power_of_two(most))
        warps = min(_MOST_WARPS, max(1, rows * along // _PER_WARP))
        along_rows = () if most == 1 else (("ROWS", rows),)
        found[Config((*along_rows, ("ALONG", along)), warps, num_stages=1)] = None
    return tuple(found)


def power_of_two(size: int) -> int:
    """Give the smallest power of two that is not below a size; at least 2."""
    return max(2, 1 << (size - 1).bit_length())
