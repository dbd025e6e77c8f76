"""Blocks in an arena lie apart while they are alive together."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from pyrelay.kernels.arena import Allocation, placed


def check(blocks: list[Allocation]) -> int:
    """Check that blocks that are alive together lie apart; return the bytes of the arena."""
    begins, total = placed(blocks)
    for (at, one), (place, other) in combinations(zip(begins, blocks, strict=True), 2):
        is_together = one.first <= other.last and other.first <= one.last
        if is_together and one.bytes and other.bytes:
            assert at + one.bytes <= place or place + other.bytes <= at
    for at, block in zip(begins, blocks, strict=True):
        assert at % 64 == 0
        assert at + block.bytes <= total
    return total


def test_blocks_that_are_not_alive_together_share_a_place() -> None:
    assert check([Allocation(1000, 0, 1), Allocation(1000, 2, 3)]) == 1024
    assert check([Allocation(1000, 0, 2), Allocation(1000, 2, 3)]) == 2048


def test_small_blocks_take_parts_of_the_place_of_a_large_one() -> None:
    assert check([Allocation(64, 0, 0), Allocation(128, 0, 0), Allocation(256, 1, 1)]) == 256


def test_there_may_be_no_blocks_and_blocks_without_bytes() -> None:
    assert placed([]) == ((), 0)
    assert check([Allocation(0, 0, 5), Allocation(0, 0, 5)]) == 0


@pytest.mark.parametrize("seed", range(4))
def test_random_blocks_need_hardly_more_than_those_that_are_alive_at_once(seed: int) -> None:
    random = Random(seed)
    blocks: list[Allocation] = []
    for _ in range(100):
        first = random.randrange(50)
        blocks.append(
            Allocation(64 * random.randrange(1, 100), first, first + random.randrange(20))
        )
    most = max(sum(b.bytes for b in blocks if b.first <= t <= b.last) for t in range(70))
    assert most <= check(blocks) <= 1.2 * most


def test_thousands_of_blocks_that_follow_each_other_share_few_places() -> None:
    blocks = [Allocation(128, time, time + 1) for time in range(2000)]
    _, total = placed(blocks)
    assert total <= 4 * 128
