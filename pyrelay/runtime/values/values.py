"""Values while a program runs, and how sizes are read off them.

Values of data types are made and taken apart by `representation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import Any, TypeAlias, final

from ...ir.dims import Dim
from ...ir.types import RefType, SizeType, TensorType, TupleType, Type


@final
class Cell:
    """A mutable cell: the value of a `ref`."""

    __slots__ = ("_shadows", "reference", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.reference: object | None = None
        """What a script has of this cell, if it has it."""
        self._shadows: dict[Cell, Cell] | None = None

    def shadow_of(self, cell: Cell, zero: Any) -> Cell:
        """Return the shadow of a cell in the run of a backward function that this cell stands for;
        it holds `zero` when it is first asked for."""
        if self._shadows is None:
            self._shadows = {}
        found = self._shadows.get(cell)
        if found is None:
            found = self._shadows[cell] = Cell(zero)
        return found

    def __repr__(self) -> str:
        return f"Cell({self.value!r})"


class Reach(Enum):
    """One step from a value towards a size in it."""

    FIELD = "field of a tuple"
    SHAPE = "size of a tensor"
    CONTENT = "content of a cell"


Path: TypeAlias = tuple[tuple[Reach, int], ...]
"""How to get from a value to a size in it."""


@lru_cache(maxsize=4096)
def size_paths(ty: Type) -> tuple[tuple[Dim, Path], ...]:
    """Return the dims that a value of the type shows, each with the path to its first
    occurrence."""
    found: dict[Dim, Path] = {}
    for dim, path in _sizes(ty):
        if dim.constant is None:
            found.setdefault(dim, path)
    return tuple(found.items())


def _sizes(ty: Type) -> Iterator[tuple[Dim, Path]]:
    pending: list[tuple[Type, Path]] = [(ty, ())]
    while pending:
        current, path = pending.pop()
        match current:
            case SizeType(dim):
                yield dim, path
            case TensorType(shape):
                for i, dim in enumerate(shape):
                    yield dim, (*path, (Reach.SHAPE, i))
            case TupleType(fields):
                inside = [(f, (*path, (Reach.FIELD, i))) for i, f in enumerate(fields)]
                pending += reversed(inside)
            case RefType(value):
                pending.append((value, (*path, (Reach.CONTENT, 0))))
            case _:
                pass


def follow(value: Any, path: Path) -> int:
    """Return the size that a path leads to."""
    for step, index in path:
        match step:
            case Reach.FIELD:
                value = value[index]
            case Reach.SHAPE:
                value = value.shape[index]
            case Reach.CONTENT:
                value = value.value
    return int(value)


def cells_of(tree: Any) -> list[Cell]:
    """Return the cells in nested tuples, left to right."""
    found: list[Cell] = []
    pending = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, Cell):
            found.append(value)
        else:
            pending += reversed(value)
    return found
