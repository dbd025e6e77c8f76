"""In which order the operands of an einsum are multiplied, two at a time.

The cost of a step is how many products it makes, a size that only the run knows counted as
`ASSUMED_SIZE`; of orders that cost the same the one that stores less is taken. Of up to
`MOST_TRIED` operands the order is the best of all, found set by set; of more it is greedy: the two
whose product adds fewest elements come first (Smith and Gray, opt_einsum, JOSS 2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from math import prod
from typing import Final, TypeAlias

from ...ir.dims import Dim

ASSUMED_SIZE: Final = 64
MOST_TRIED: Final = 6

Order: TypeAlias = tuple[tuple[int, int], ...]
"""Which two are multiplied in each step. The result of a step is numbered after all before it."""


def count(dim: Dim) -> int:
    """Return a size as a number."""
    return dim.evaluate(dict.fromkeys(dim.names(), ASSUMED_SIZE))


def order_of(terms: Sequence[str], result: str, sizes: Mapping[str, int]) -> Order:
    """Return the order in which operands with these labels are multiplied."""
    if len(terms) > MOST_TRIED:
        return _greedy(terms, result, sizes)
    return _best(terms, result, sizes)


def left_labels(first: str, second: str, needed: str) -> str:
    """Return the labels of the product of two operands: those that something needs."""
    return "".join(c for c in dict.fromkeys(first + second) if c in needed)


def _size(labels: str, sizes: Mapping[str, int]) -> int:
    return prod(sizes[c] for c in labels)


def _best(terms: Sequence[str], result: str, sizes: Mapping[str, int]) -> Order:
    """Return the cheapest order of all, by dynamic programming over sets of operands."""
    everything = frozenset(range(len(terms)))

    def labels(chosen: frozenset[int]) -> str:
        if len(chosen) == 1:
            return terms[next(iter(chosen))]
        needed = result + "".join(terms[i] for i in everything - chosen)
        return left_labels("".join(terms[i] for i in sorted(chosen)), "", needed)

    @cache
    def plan(chosen: frozenset[int]) -> tuple[int, int, tuple[frozenset[int], ...]]:
        """Return the cost of a set, and the first of the two sets in each step, last step first."""
        first, *others = sorted(chosen)
        if not others:
            return 0, 0, ()
        found: list[tuple[int, int, tuple[frozenset[int], ...]]] = []
        for size in range(len(others)):
            for more in combinations(others, size):
                left = frozenset((first, *more))
                right = chosen - left
                one, two = plan(left), plan(right)
                here = _size(
                    left_labels(labels(left), labels(right), labels(left) + labels(right)), sizes
                )
                stored = _size(labels(chosen), sizes)
                steps = (left, *one[2], *two[2])
                found.append((here + one[0] + two[0], stored + one[1] + two[1], steps))
        return min(found, key=lambda f: f[:2])

    numbers = {frozenset((i,)): i for i in everything}
    steps: list[tuple[int, int]] = []
    pending = [everything]
    while pending:
        chosen = pending[-1]
        if chosen in numbers:
            pending.pop()
            continue
        left = plan(chosen)[2][0]
        right = chosen - left
        missing = [s for s in (right, left) if s not in numbers]
        if missing:
            pending += missing
            continue
        numbers[chosen] = len(terms) + len(steps)
        steps.append((numbers[left], numbers[right]))
    return tuple(steps)


def _greedy(terms: Sequence[str], result: str, sizes: Mapping[str, int]) -> Order:
    """Return an order in which each step adds as few elements as can be."""
    alive = dict(enumerate(terms))
    steps: list[tuple[int, int]] = []
    while len(alive) > 1:

        def added(pair: tuple[int, int]) -> int:
            one, two = (alive[i] for i in pair)
            needed = result + "".join(t for i, t in alive.items() if i not in pair)
            made = _size(left_labels(one, two, needed), sizes)
            return made - _size(one, sizes) - _size(two, sizes)

        pair = min(combinations(alive, 2), key=added)
        one, two = (alive.pop(i) for i in pair)
        alive[len(terms) + len(steps)] = left_labels(one, two, result + "".join(alive.values()))
        steps.append(pair)
    return tuple(steps)
