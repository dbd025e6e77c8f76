"""The dtypes of weak numbers that flow into names: what takes a number is at least as wide as it.

The name that a loop, a recursion, a cell or a list carries has a dtype of its own, free of the
literal it starts from. It may rise above that literal; it never stays below what flows into it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, TypeAlias, final

from ..ir.types import DEFAULT_DTYPE, AnyDType, DType, DTypeHole, DTypeKind


class Way(Enum):
    """Which way values go between an unknown type and the type that it is found to be."""

    IN = "into the unknown type"
    OUT = "out of the unknown type"
    BOTH = "both ways"


Origin: TypeAlias = tuple[object, ...]
"""The node that carries a value, and the places in its type at which a number stands: the same in
each inference of a function."""


@final
class Carried:
    """The weak dtypes of one inference that follow others, and where each began."""

    def __init__(self, known: Mapping[Origin, DType]) -> None:
        """`known` are the dtypes that an inference before this one has found."""
        self.known: Final = known
        self._followers: Final[dict[int, list[DTypeHole]]] = {}
        self._origins: Final[dict[Origin, DTypeHole]] = {}

    def follow(self, source: AnyDType, target: AnyDType, way: Way = Way.IN) -> None:
        """Make a weak dtype at least as wide as another that flows into it."""
        if not isinstance(source, DTypeHole) or not isinstance(target, DTypeHole):
            return
        if way is not Way.OUT:
            self._followers.setdefault(source.number, []).append(target)
        if way is not Way.IN:
            self._followers.setdefault(target.number, []).append(source)

    def begin(self, origin: Origin, target: DTypeHole) -> None:
        """Note where a weak dtype begins."""
        self._origins.setdefault(origin, target)

    def followers(self, source: DTypeHole) -> list[DTypeHole]:
        """Return the dtypes that follow one which has just been found, and forget them."""
        return self._followers.pop(source.number, [])

    def risen(self, resolve: Callable[[AnyDType], AnyDType]) -> dict[Origin, DType]:
        """Return the dtypes that are wider than the literals they start from, by origin."""
        found: dict[Origin, DType] = dict(self.known)
        for origin, start in self._origins.items():
            dtype = resolve(start)
            if isinstance(dtype, DTypeHole):
                dtype = DEFAULT_DTYPE[dtype.weak or DTypeKind.FLOAT]
            assert start.weak is not None
            if dtype != DEFAULT_DTYPE[start.weak]:
                found[origin] = dtype
        return found


def is_above(dtype: AnyDType, other: AnyDType) -> bool:
    """Return whether values of a dtype lose something in another: a dtype of a higher family, or a
    known one where the family alone is known."""
    kind, lower = _kind(dtype), _kind(other)
    if kind is None or lower is None:
        return False
    if kind is not lower:
        return kind.value > lower.value
    return isinstance(dtype, DType) and isinstance(other, DTypeHole)


def _kind(dtype: AnyDType) -> DTypeKind | None:
    return dtype.weak if isinstance(dtype, DTypeHole) else dtype.kind
