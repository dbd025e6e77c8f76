"""Places in an arena: blocks of known sizes that are alive for a while each.

The largest block is placed first, each at the lowest place where no other lies that is alive with
it ("greedy by size" of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
Inference", 2020), which is mostly as good as can be: no arena is smaller than all that is alive at
one time. That takes quadratic time, so the small ones of very many only take the places of those
of their size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final, final

from ..dataclass import dataclass

_ALIGNMENT: Final = 64
"""The alignment of blocks, in bytes: a cache line."""

_MOST: Final = 1024
"""How many blocks may take any place."""


@final
@dataclass(frozen=True, slots=True)
class Allocation:
    """So many bytes, which are needed from the time `first` to the time `last`, with both."""

    bytes: int
    first: int
    last: int

    @property
    def room(self) -> int:
        """The bytes behind which another block may begin."""
        return -(-self.bytes // _ALIGNMENT) * _ALIGNMENT


def placed(blocks: Sequence[Allocation]) -> tuple[tuple[int, ...], int]:
    """Return where each block begins, and the bytes of the arena."""
    order = sorted(range(len(blocks)), key=lambda number: -blocks[number].bytes)
    begins: dict[int, int] = {}
    done: list[tuple[int, int, Allocation]] = []
    for number in order[:_MOST]:
        block = blocks[number]
        around = sorted(
            (b, e) for b, e, o in done if o.first <= block.last and o.last >= block.first
        )
        at = begins[number] = _lowest(block.room, around)
        done.append((at, at + block.room, block))
    total = max((end for _, end, _ in done), default=0)
    free: defaultdict[int, list[int]] = defaultdict(list)
    alive: list[tuple[int, int, int]] = []
    for number in sorted(order[_MOST:], key=lambda number: blocks[number].first):
        block = blocks[number]
        while alive and alive[0][0] < block.first:
            _, at, room = heappop(alive)
            free[room].append(at)
        if not free[block.room]:
            free[block.room].append(total)
            total += block.room
        begins[number] = free[block.room].pop()
        heappush(alive, (block.last, begins[number], block.room))
    return tuple(begins[number] for number in range(len(blocks))), total


def _lowest(room: int, around: Sequence[tuple[int, int]]) -> int:
    """Return the lowest place with so much room between others, which are in order."""
    at = 0
    for begin, end in around:
        if begin - at >= room:
            break
        at = max(at, end)
    return at
