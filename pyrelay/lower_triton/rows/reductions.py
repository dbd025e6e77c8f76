"""The reductions of a kernel: what elements combine, in which dtype, and what changes nothing.

Half types are summed in float32, whole numbers in int64 (the dtype of the result).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...ir.expr import type_of
from ...ir.types import DType, TupleType, Type, bool_, int32, int64, is_float
from ...kernels.groups import Reduced
from ...kernels.reading import dtype_of
from ..scalars import highest, lowest
from ..terms import Term, Terms, widened

if TYPE_CHECKING:
    from .online import Online

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


def combining_dtype(reduced: Reduced) -> DType:
    """Return the dtype in which the elements of a reduction combine."""
    if reduced.combine in _POSITIONS:
        return widened(dtype_of(type_of(reduced.operand)))
    if reduced.combine in ("and", "or"):
        return bool_
    return widened(dtype_of(first_of(type_of(reduced.call))))


def result_terms(terms: Terms, reduced: Reduced, number: int) -> tuple[Term | None, Term | None]:
    """Return the terms of the value and of the position that a reduction gives, as far as it does;
    `number` tells it from others."""
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
    """Return what stands for parts that are not there."""
    first = identity(reduction)
    first = int(first) if isinstance(first, bool) else first
    return (first, -1) if reduction.is_pair else (first,)


def first_of(ty: Type) -> Type:
    """Return the type of what a reduction gives, without that of a position beside it."""
    if not isinstance(ty, TupleType):
        return ty
    first, _ = ty.fields
    return first


def identity(reduction: Reduction) -> float:
    """Return what changes nothing when it is combined."""
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
