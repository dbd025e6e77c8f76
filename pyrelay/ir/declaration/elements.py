"""Element bodies: how one element of a result is computed, in the language of fused kernels.

A body written over `Elements` says what the element of the result at one place is, in terms of
elements of the operands. Whoever fuses operators reads the body of each where the next one asks for
an element, so that nothing between them is ever stored. Places are integer polynomials (`Dim`) over
the coordinates of the kernel and the sizes of the program; both are simplified alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, final

from ...dataclass import dataclass
from ..dims import Dim
from ..types import DType, int64
from .scalars import Scalars


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Which element of a result is asked for: one coordinate for each dim of its shape.

    A coordinate `c` of a dim of size `s` is an integer with `0 <= c < s`.
    """

    index: tuple[Dim, ...]
    shape: tuple[Dim, ...]


class Source(Protocol):
    """An operand, element by element."""

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes of the operand."""
        ...

    @property
    def dtype(self) -> DType:
        """The dtype of its elements."""
        ...

    def __call__(self, *index: Dim) -> Any:
        """Return the element at coordinates that lie inside."""
        ...

    def within(self, index: Sequence[Dim], inside: Any, otherwise: Any) -> Any:
        """Return the element at coordinates where the bool value `inside` holds, else `otherwise`;
        nothing is read where it does not hold, so the coordinates may then lie anywhere."""
        ...


class Elements(Scalars, Protocol):
    """The arithmetic of values, and the ways between values and places."""

    def number(self, coordinate: Dim, /) -> Any:
        """Return a coordinate, a size or an integer as an int64 value."""
        ...

    def constant(self, value: float, dtype: DType, /) -> Any:
        """Return a number in a dtype; `const` gives it in that of the result."""
        return self.cast(self.const(value), dtype)

    def coordinate(self, value: Any, size: Dim, /, *, from_end: bool = True) -> Dim:
        """Return an integer value as a coordinate of a dim of this size. Negative values count from
        the end, or lie outside without `from_end`. A kernel fails where the result lies outside,
        if its device can."""
        ...


def number_element(k: Elements, value: Any, dtype: DType | None) -> Any:
    """Return a number that an attribute states, sizes included, as an element of a dtype."""
    if not isinstance(value, Dim):
        return k.const(value)
    found = k.number(value)
    return found if dtype is None or dtype == int64 else k.cast(found, dtype)
