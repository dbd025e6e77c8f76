"""Reductions that need the result of another, and can still be made in the same pass over a row.

    m = max(x); sum(weight * exp(x - m))         a sum relative to the largest so far, which is
                                                 scaled down when a larger one is found
    m = mean(x); sum((x - m) ** 2)               sums of differences from the first element seen,
                                                 and of their squares

The first is the online softmax of Milakov and Gimelshein (2018, "Online normalizer calculation for
softmax"). The second is the sum of shifted data of Chan, Golub and LeVeque (1983, "Algorithms for
computing the sample variance"), each place of a block with a shift of its own; places, and parts
of a row, are put together as in their "Updating formulae and a pairwise algorithm for computing
sample variances" (1979). Both are found in the terms, whatever operators they came from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, final

from ...ir.types import is_float
from ..terms import Term
from .reductions import Reduction


@final
@dataclass(frozen=True, slots=True, eq=False)
class Exponentials:
    """A sum of `weight * exp(x - shift)`, where `shift` is the largest of all `x` where that is
    finite, and `leader` finds the largest. Without a weight it is 1."""

    leader: Reduction
    shift: Term
    weight: Term | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Deviations:
    """A sum, or mean, of squared differences from the mean that `leader` finds."""

    leader: Reduction


Online: TypeAlias = Exponentials | Deviations


def online_of(
    combine: str, operand: Term, before: Iterable[Reduction], is_known: Callable[[Term, Term], bool]
) -> Online | None:
    """Return how a reduction is made in the same pass as one of those before it, if it can be.

    `is_known` tells whether a term is known no later than another.
    """
    if combine not in ("add", "mean") or operand.dtype is None or not is_float(operand.dtype):
        return None
    for leader in before:
        if leader.value is None or leader.is_pair or leader.dtype != operand.dtype:
            continue
        found = _exponentials(operand, leader) or _deviations(operand, leader)
        weight = found.weight if isinstance(found, Exponentials) else None
        if found is not None and (weight is None or is_known(weight, leader.operand)):
            return found
    return None


def _exponentials(operand: Term, leader: Reduction) -> Exponentials | None:
    if leader.reduced.combine != "max":
        return None
    for power, weight in _factors(operand):
        match power:
            case Term("exp", (Term("sub", (x, shift)),)) if x is leader.operand:
                if _is_where_finite(shift, leader.value):
                    return Exponentials(leader, shift, weight)
            case _:
                pass
    return None


def _factors(term: Term) -> Iterator[tuple[Term, Term | None]]:
    """Return ways to write a term as a product, the first factor and the second; none is 1."""
    yield term, None
    match term:
        case Term("mul", (a, b)):
            yield a, b
            yield b, a
        case _:
            pass


def _is_where_finite(term: Term, value: Term | None) -> bool:
    """Return whether a term is the value, or the value where it is finite and 0 where it is not."""
    match term:
        case _ if term is value:
            return True
        case Term("where", (Term("lt", (Term("abs", (size,)), most)), a, Term("const") as zero)):
            is_infinite = most.op == "const" and most.detail == math.inf
            return is_infinite and size is value and a is value and zero.detail == 0
        case _:
            return False


def _deviations(operand: Term, leader: Reduction) -> Deviations | None:
    match operand:
        case Term("mul", (Term("sub", (x, mean)) as one, other)) if one is other:
            is_of_mean = leader.reduced.combine == "mean" and mean is leader.value
            return Deviations(leader) if is_of_mean and x is leader.operand else None
        case _:
            return None
