"""Block sizes of passes with reductions.

A program should have some thousands of elements in flight: fewer do not hide the latency of memory,
more do not fit into registers. Where operands lie along the reduced dims (rows), blocks are as long
as can be along them; where some lie along the kept ones (columns), neighbouring columns are read
together, in squares, so that each operand fills lines of memory in its own direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...ir.dims import Dim
from ..kernel import Config

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
_REGISTERS: Final = 32768
"""So many of the 65,536 registers of a processor hold a row; the others are for what is computed
of it. By ptxas for sm_90, nothing is spilled then: softmax, log-softmax and RMS norm of 32,768
float32 take 51 to 64 of 64 registers a thread in 32 warps; the gradients of softmax and of norms,
which hold two values of each element, 90 to 128 of 128 for 16,384 in 16 warps. With twice as much
each thread spills 100 bytes and more."""
_WIDE: Final = 16384
"""Longer parts of a row take 32 warps: in 16 a thread has 64 elements, and spills a few."""
_FEW: Final = 256
"""So many programs are two for each processor of an H200, with 2 MB of float32 in flight of the 3
MB that its memory asks for; more rows are not cut into pieces."""
_COLUMNS: Final = 32
"""So many neighbouring float32 columns fill a line of memory."""
_BLOCK_OF_COLUMNS: Final = 64
_MERGED: Final = 8192
"""So many results of pieces are combined at once."""
_START: Final = 2e-6
"""Seconds from the end of a kernel to where one that needs its results is at work: the model's
number, to be measured on a device."""
_RATE: Final = 2e10
"""Bytes that one program moves in a second while it loops: 8 to 16 KB in flight, some 0.7 us away.
Another number to be measured."""


def longest_block(registers: int, *, is_column: bool) -> int:
    """Return how long a row may be that is one block on one processor, if each element fills
    so many registers; a power of two."""
    elements = floor_power(max(_REGISTERS // max(registers, 1), _ELEMENTS))
    return elements // _COLUMNS if is_column else elements


def longest_read_once(is_column: bool) -> int:
    """Return how long a row is at most made one block where a loop reads it no more often."""
    return 128 if is_column else 16384


def longest_loop(kernels: int, moved: int, *, is_column: bool) -> int:
    """Return how long the rows may be that one program goes through, where there are few: as long
    as that takes less time than pieces of the rows would, in so many kernels. `moved` are the bytes
    that a loop moves for each element, in all its passes.

    A loop takes `length * moved / _RATE`, pieces `(kernels - 1) * _START` and the time of a piece,
    which is `shortest_piece`: 16,192 elements for the sum of float32, 11,525 for softmax.
    """
    side = _BLOCK_OF_COLUMNS if is_column else 1
    starts = (kernels - 1) * _START * _RATE
    return shortest_piece(is_column) + int(starts / (max(moved, 1) * side))


def few_rows(is_column: bool) -> int:
    """Return how many rows there may be so that a program for each does not fill a device."""
    return _FEW * (_BLOCK_OF_COLUMNS if is_column else 1)


def piece_unit(is_column: bool) -> int:
    """Return how many elements of a row there are in a piece, or a multiple of it."""
    return 128 if is_column else 2048


def shortest_piece(is_column: bool) -> int:
    """Return how many elements of a row are in a piece at least: several blocks."""
    return 128 if is_column else 8192


def most_pieces(kept: Dim, *, is_column: bool) -> int:
    """Return into how many pieces a row is cut at most, a power of two: so that all rows give
    enough programs, and what the pieces of a block of rows found is combined at once."""
    rows = 8 if kept.constant is None else power_of_two(max(kept.constant, 1))
    if is_column:
        return _MERGED // min(max(rows, 8), _BLOCK_OF_COLUMNS)
    return max(8, 1024 // rows)


def one_block_configs(
    kept: Dim, longest: int, *, is_column: bool, share: int | None
) -> tuple[Config, ...]:
    """Return configurations for rows of at most so many elements. Processors share rows that are
    longer than `share`."""
    along = power_of_two(longest)
    processors = 1 if share is None else max(1, along // share)
    if along >= _ELEMENTS and not is_column:
        return _distinct(kept, [(None, along)], processors)
    rows = min(_MOST_ROWS, max(_COLUMNS if is_column else 1, _ELEMENTS // along))
    choices = [rows, 2 * rows, max(2, rows // 2)]
    most = max(16384, rows * along)
    return _distinct(kept, [(r, along) for r in choices if r * along <= most], processors)


def loop_configs(
    kept: Dim, reduced: Dim, *, is_column: bool, divides: int = 4096
) -> tuple[Config, ...]:
    """Return configurations for rows that take several blocks, or parts of rows whose lengths
    `divides` divides. If blocks of some of these sizes fill a row there are no others, so that
    nothing has to be masked."""
    if is_column:
        return _distinct(kept, [(_BLOCK_OF_COLUMNS, 64), (32, 64), (_BLOCK_OF_COLUMNS, 32)])
    sizes = [size for size in (2048, 4096, 1024) if divides % size == 0]
    filling = [size for size in sizes if is_multiple(reduced, size)]
    return _distinct(kept, [(None, size) for size in filling or sizes])


def _distinct(
    kept: Dim, sizes: list[tuple[int | None, int]], processors: int = 1
) -> tuple[Config, ...]:
    """Return configurations of so many rows and so many elements of each; None is one row, which is
    no block then."""
    most = kept.constant
    found: dict[Config, None] = {}
    for rows, along in sizes:
        if rows is not None and most is not None:
            rows = min(rows, power_of_two(most)) if most > 1 else None
        elements = (rows or 1) * along // processors
        warps = 2 * _MOST_WARPS if elements > _WIDE else min(_MOST_WARPS, elements // _PER_WARP)
        along_rows = () if rows is None else ((ROWS, rows),)
        constants = (*along_rows, (ALONG, along))
        found[Config(constants, max(1, warps), num_stages=1, num_ctas=processors)] = None
    return tuple(found)


def fills(configs: Sequence[Config], block: str, dim: Dim) -> bool:
    """Return whether blocks of every configuration fill a dim, so that none reaches beyond it."""
    return all(is_multiple(dim, dict(c.constants).get(block, 1)) for c in configs)


def is_multiple(dim: Dim, size: int) -> bool:
    """Return whether a size is a multiple of a number, whatever the sizes it is made of."""
    return all(coefficient % size == 0 for _, coefficient in dim.terms)


def power_of_two(size: int) -> int:
    """Return the smallest power of two that is not below a size; at least 2."""
    return max(2, 1 << (size - 1).bit_length())


def floor_power(size: int) -> int:
    """Return the largest power of two that is not above a size of at least 1."""
    return 1 << (size.bit_length() - 1)
