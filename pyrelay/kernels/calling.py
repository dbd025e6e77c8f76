"""How kernels are called: the layout of their operands, their arguments, and values of sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from math import prod
from typing import Any, Final, TypeAlias, final

from ..dataclass import dataclass
from ..ir.dims import Dim, DimAtom, DimOp
from ..ir.expr import Function
from ..ir.types import DType, SizeType, TensorType


class NoKernel(Exception):  # noqa: N818  the caller decides what it means
    """A group that a backend makes no kernel of; says why."""


class Form(Enum):
    """The form of an operand, as far as the text of a kernel depends on it."""

    CONTIGUOUS = "a tensor whose elements lie row by row"
    STRIDED = "a tensor with any strides"
    NUMBER = "a Python number"


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """How the operands of a group lie in memory: the form of each, and whether places need 64 bits
    (some tensor has 2**31 elements or more)."""

    operands: tuple[Form, ...]
    is_wide: bool = False
    units: tuple[int | None, ...] = ()
    """For each operand with any strides the dim along which its elements lie one behind the other,
    if there is one; empty if nothing is known of any."""

    def lies_along(self, operand: int, axis: int) -> bool:
        """Return whether the elements of an operand with any strides are known to lie one behind
        the other along a dim."""
        return bool(self.units) and self.units[operand] == axis


def contiguous_layout(function: Function) -> Layout:
    """Return the layout of operands that lie row by row."""
    forms = (
        Form.NUMBER if isinstance(p.ty, SizeType) else Form.CONTIGUOUS for p in function.params
    )
    return Layout(tuple(forms))


@final
@dataclass(frozen=True, slots=True)
class Read:
    """The address of an operand of the group, by its position."""

    operand: int
    dtype: DType


@final
@dataclass(frozen=True, slots=True)
class Stride:
    """The stride, in elements, of one dim of an operand."""

    operand: int
    axis: int


@final
@dataclass(frozen=True, slots=True)
class Written:
    """The address of a result of the group, by its position, in new storage; or of the storage of
    an operand that the group overwrites, numbered after the results. `starts_zero` asks for zeros
    to add to."""

    result: int
    dtype: DType
    shape: tuple[Dim, ...]
    overwrites: int | None = None
    starts_zero: bool = False


@final
@dataclass(frozen=True, slots=True)
class Scratch:
    """The address of storage that lives while the group runs, by number. `way` is the only one of
    several ways to run the group that needs it; None where all do."""

    number: int
    dtype: DType
    shape: tuple[Dim, ...]
    starts_zero: bool = False
    way: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Size:
    """An integer that the sizes of the operands determine."""

    dim: Dim


@final
@dataclass(frozen=True, slots=True)
class Number:
    """An operand that is a Python number, passed by value; its position."""

    operand: int
    dtype: DType


Argument: TypeAlias = Read | Stride | Written | Scratch | Size | Number


_LONGEST: Final = 24


def size_name(dim: Dim) -> str:
    """Return a readable name for an integer that is a dim: `N`, `N_4`."""
    text = str(dim).replace("//", " by ").replace("-", " less ").replace("+", " plus ")
    words = re.sub(r"\W+", "_", text).strip("_").split("_")
    if len(dim.terms) == 1 and words[0].isdigit():
        words = [*words[1:], words[0]]
    name = "_".join(words)
    if len(name) > _LONGEST:
        return "size"
    return name if name[:1].isalpha() else f"size_{name}"


@final
class Sizes:
    """The values of the dims in the types of operands, by their shapes."""

    def __init__(self, operands: Iterable[tuple[Any, Any]]) -> None:
        """`operands` are pairs of type and value."""
        shown: list[tuple[Dim, int]] = []
        for ty, value in operands:
            match ty:
                case SizeType(dim):
                    shown.append((dim, int(value)))
                case TensorType(shape) if shape:
                    shown += zip(shape, value.shape, strict=True)
                case _:
                    pass
        self._known: Final = dict(reversed(shown))
        while any(self._solve(dim, size) for dim, size in shown):
            pass

    def _solve(self, dim: Dim, size: int) -> bool:
        """Find the one unknown atom of a dim, such as that of `4*H + 1`, or `K` in `N*K` where `N`
        is known; return whether there was one."""
        unknown = {a for atoms, _ in dim.terms for a in atoms if not self._is_known(a)}
        holders = [(atoms, factor) for atoms, factor in dim.terms if unknown.intersection(atoms)]
        if len(unknown) != 1 or len(holders) != 1:
            return False
        (atom,), ((atoms, factor),) = unknown, holders
        by = prod((Dim.atom(a) for a in atoms if a != atom), start=Dim.of(factor))
        divisor = self.value(by)
        if atoms.count(atom) != 1 or divisor == 0:
            return False
        rest = self.value(dim - by * Dim.atom(atom))
        self._known[Dim.atom(atom)] = (size - rest) // divisor
        return True

    def _is_known(self, atom: DimAtom) -> bool:
        try:
            self.value(Dim.atom(atom))
        except KeyError:
            return False
        return True

    def value(self, dim: Dim) -> int:
        """Return the value of a dim: that of an operand's dim, or computed from its parts, or from
        a known factor or summand. Raises KeyError if it is none of these."""
        try:
            return dim.value(self._known.get)
        except KeyError:
            ways = self._value_of_product, self._value_of_sum, self._value_of_operations
            found = next((f for way in ways if (f := way(dim)) is not None), None)
            if found is None:
                raise
            return found

    def _value_of_product(self, dim: Dim) -> int | None:
        """Return the value of a product of sums whose parts are unknown, as in `(N + M) * D`."""
        for factor, size in list(self._known.items()):
            quotient = None if factor.constant is not None else dim.exact_quotient(factor)
            if quotient is None:
                continue
            with suppress(KeyError):
                return size * self.value(quotient)
        return None

    def _value_of_sum(self, dim: Dim) -> int | None:
        """Return the value of a sum of which an operand shows some terms, or a part of each, as
        `N*M - 1` or `8*N + 8*M + 1`."""
        counts = dict(dim.terms)
        for summand, size in list(self._known.items()):
            monomial, by = summand.terms[0] if summand.terms else ((), 0)
            times = counts.get(monomial, 0) // by if monomial else 0
            rest = dim - summand * times
            if times and len(rest.terms) < len(dim.terms):
                with suppress(KeyError):
                    return times * size + self.value(rest)
        return None

    def _value_of_operations(self, dim: Dim) -> int | None:
        """Return the value of a dim with operations on sums whose parts are unknown, as in
        `(N + M) // 2`."""
        atoms = (a for monomial, _ in dim.terms for a in monomial)
        fresh = [a for a in atoms if isinstance(a, DimOp) and Dim.atom(a) not in self._known]
        with suppress(KeyError):
            for op in fresh:
                left, right = Dim.of(self.value(op.left)), Dim.of(self.value(op.right))
                self._known[Dim.atom(op)] = Dim.atom(DimOp(op.kind, left, right)).evaluate({})
            return self.value(dim) if fresh else None
        return None

    def known(self, dims: Iterable[Dim]) -> list[int]:
        """Return the values of dims, without those that no operand shows: then no kernel needs
        them, and what has them is not computed."""
        found: list[int] = []
        for dim in dims:
            with suppress(KeyError):
                found.append(self.value(dim))
        return found
