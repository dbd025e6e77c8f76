"""Block sizes of passes with reductions.

A program should have some thousands of elements in flight: fewer do not hide the latency of memory,
more do not fit into registers. Where operands lie along the reduced dims (rows), blocks are as long
as can be along them; where some lie along the kept ones (columns), neighbouring columns are read
together, in squares, so that each operand fills lines of memory in its own direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..ir.dims import Dim
from .kernel import Config

ROWS: Final = "ROWS"
ALONG: Final = "ALONG"
"""The constants: how many rows, and how many elements of each, a block has."""

_ELEMENTS: Final = 1024
"""How many elements a program takes at least, rows permitting."""
_PER_WARP: Final = 256
"""Eight elements for each thread: two wide loads of float32 in flight for each operand, one of
halves."""
_MOST_WARPS: Final = 16
_MOST_ROWS: Final = 128
_FEW: Final = 256
"""So many programs are two for each processor of an H200, with 2 MB of float32 in flight of the 3
MB that its memory asks for; more rows are not cut into pieces."""
_COLUMNS: Final = 32
_BLOCK_OF_COLUMNS: Final = 64
_MERGED: Final = 8192
"""So many results of pieces are combined at once."""
"""So many neighbouring float32 columns fill a line of memory."""


def longest_block(is_column: bool) -> int:
    """Give how long a row may be that is one block."""
    # In 16 warps each thread holds 32 elements of each operand: with two, as in the gradient of a
    # norm, ptxas takes 120 of the 128 registers that there are.
    return 128 if is_column else 16384


def longest_loop(is_column: bool) -> int:
    """Give how long the rows may be that one program goes through, where there are few."""
    return 512 if is_column else 16384


def few_rows(is_column: bool) -> int:
    """Give how many rows there may be so that a program for each does not fill a device."""
    return _FEW * (_BLOCK_OF_COLUMNS if is_column else 1)


def piece_unit(is_column: bool) -> int:
    """Give how many elements of a row there are in a piece, or a multiple of it."""
    return 128 if is_column else 2048


def shortest_piece(is_column: bool) -> int:
    """Give how many elements of a row are in a piece at least: several blocks."""
    return 128 if is_column else 8192


def most_pieces(kept: Dim, *, is_column: bool) -> int:
    """Give into how many pieces a row is cut at most, a power of two: so that all rows give enough
    programs, and what the pieces of a block of rows found is combined at once."""
    rows = 8 if kept.constant is None else power_of_two(max(kept.constant, 1))
    if is_column:
        return _MERGED // min(max(rows, 8), _BLOCK_OF_COLUMNS)
    return max(8, 1024 // rows)


def one_block_configs(kept: Dim, longest: int, *, is_column: bool) -> tuple[Config, ...]:
    """Give configurations for rows of at most so many elements."""
    along = power_of_two(longest)
    if along >= _ELEMENTS and not is_column:
        return _distinct(kept, [(None, along)])
    rows = min(_MOST_ROWS, max(_COLUMNS if is_column else 1, _ELEMENTS // along))
    choices = [rows, 2 * rows, max(2, rows // 2)]
    return _distinct(kept, [(r, along) for r in choices if r * along <= 16384])


def loop_configs(
    kept: Dim, reduced: Dim, *, is_column: bool, divides: int = 4096
) -> tuple[Config, ...]:
    """Give configurations for rows that take several blocks, or parts of rows whose lengths
    `divides` divides. If blocks of some of these sizes fill a row there are no others, so that
    nothing has to be masked."""
    if is_column:
        return _distinct(kept, [(_BLOCK_OF_COLUMNS, 64), (32, 64), (_BLOCK_OF_COLUMNS, 32)])
    sizes = [size for size in (2048, 4096, 1024) if divides % size == 0]
    filling = [size for size in sizes if is_multiple(reduced, size)]
    return _distinct(kept, [(None, size) for size in filling or sizes])


def _distinct(kept: Dim, sizes: list[tuple[int | None, int]]) -> tuple[Config, ...]:
    """Give configurations of so many rows and so many elements of each; None is one row, which is
    no block then."""
    most = kept.constant
    found: dict[Config, None] = {}
    for rows, along in sizes:
        if rows is not None and most is not None:
            rows = min(rows, power_of_two(most)) if most > 1 else None
        warps = min(_MOST_WARPS, max(1, (rows or 1) * along // _PER_WARP))
        along_rows = () if rows is None else ((ROWS, rows),)
        found[Config((*along_rows, (ALONG, along)), warps, num_stages=1)] = None
    return tuple(found)


def fills(configs: Sequence[Config], block: str, dim: Dim) -> bool:
    """Tell whether blocks of every configuration fill a dim, so that none reaches beyond it."""
    return all(is_multiple(dim, dict(c.constants).get(block, 1)) for c in configs)


def is_multiple(dim: Dim, size: int) -> bool:
    """Tell whether a size is a multiple of a number, whatever the sizes it is made of."""
    return all(coefficient % size == 0 for _, coefficient in dim.terms)


def power_of_two(size: int) -> int:
    """Give the smallest power of two that is not below a size; at least 2."""
    return max(2, 1 << (size - 1).bit_length())
