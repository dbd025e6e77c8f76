"""The reductions of a kernel: what elements combine, in which dtype, and what changes nothing.

Half types are summed in float32, whole numbers in int64 (the dtype of the result).

Some reductions that need the result of another are still made in the same pass over a row:

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
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.expr import type_of
from ...ir.types import DType, bool_, int32, int64, is_float
from ..groups import Reduced
from ..reading import dtype_of, first_of
from .arithmetic import highest, lowest
from .terms import Term, Terms, widened

_POSITIONS: Final = ("argmax", "argmin")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A reduction of a kernel: `operand` is the term of each element, in the dtype in which they
    combine, and `results` are the terms of what it gives: the value, the position, or both.
    `online` says how it is made in the same pass as another whose result it needs."""

    reduced: Reduced
    operand: Term
    value: Term | None
    position: Term | None
    online: Online | None = None

    @property
    def dtype(self) -> DType:
        """The dtype in which elements combine."""
        assert self.operand.dtype is not None
        return self.operand.dtype

    @property
    def is_pair(self) -> bool:
        """Whether positions are kept beside the elements."""
        return self.position is not None

    @property
    def is_largest(self) -> bool:
        """Whether the largest element is looked for, not the smallest."""
        return self.reduced.combine in ("max", "argmax")

    @property
    def results(self) -> tuple[Term, ...]:
        """The terms that it gives."""
        return tuple(t for t in (self.value, self.position) if t is not None)


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


def combining_dtype(reduced: Reduced) -> DType:
    """Return the dtype in which the elements of a reduction combine."""
    if reduced.combine in _POSITIONS:
        return widened(dtype_of(type_of(reduced.operand)))
    if reduced.combine in ("and", "or"):
        return bool_
    return widened(dtype_of(first_of(type_of(reduced.call))))


def result_terms(terms: Terms, reduced: Reduced, number: int) -> tuple[Term | None, Term | None]:
    """Return the terms of the value and of the position that a reduction gives, as far as it does;
    `number` is that of the reduction in the kernel."""
    is_position = reduced.combine in _POSITIONS
    dtype = combining_dtype(reduced)
    value = None if is_position else terms.make("result", dtype=dtype, detail=(number, 0))
    has_position = is_position or reduced.with_positions
    position = terms.make("result", dtype=int64, detail=(number, 1)) if has_position else None
    return value, position


def part_dtypes(reduction: Reduction) -> tuple[DType, ...]:
    """Return the dtypes in which parts of a reduction are kept."""
    first = int32 if reduction.dtype == bool_ else reduction.dtype
    return (first, int64) if reduction.is_pair else (first,)


def part_identities(reduction: Reduction) -> tuple[float, ...]:
    """Return the identities that stand for absent parts."""
    first = identity(reduction)
    first = int(first) if isinstance(first, bool) else first
    return (first, -1) if reduction.is_pair else (first,)


def identity(reduction: Reduction) -> float:
    """Return the neutral element of the combination."""
    match reduction.reduced.combine:
        case "add" | "mean":
            return 0.0 if is_float(reduction.dtype) else 0
        case "mul":
            return 1.0 if is_float(reduction.dtype) else 1
        case "and":
            return True
        case "or":
            return False
        case _ if reduction.is_largest:
            return lowest(reduction.dtype)
        case _:
            return highest(reduction.dtype)


def online_of(
    combine: str, operand: Term, before: Iterable[Reduction], stage: Callable[[Term], int]
) -> Online | None:
    """Return how a reduction is made in the same pass as one of those before it, if it can be.

    `stage` returns after how many stages a term is known.
    """
    if combine not in ("add", "mean") or operand.dtype is None or not is_float(operand.dtype):
        return None
    for leader in before:
        if leader.value is None or leader.is_pair or leader.dtype != operand.dtype:
            continue
        found = _exponentials(operand, leader) or _deviations(operand, leader)
        weight = found.weight if isinstance(found, Exponentials) else None
        if found is not None and (weight is None or stage(weight) <= stage(leader.operand)):
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
