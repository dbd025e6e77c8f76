"""Values while a program runs, and how sizes are read off them.

Values of data types are made and taken apart by `representation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, final

from ...diagnostics.catalogue.call import WrongCall
from ...diagnostics.diagnostic import RunError
from ...diagnostics.source import NOWHERE
from ...ir.dims import Dim
from ...ir.types import DTYPES, RefType, SizeType, TensorType, TupleType, Type

if TYPE_CHECKING:
    import torch


@final
class Cell:
    """A mutable cell: the value of a `ref`."""

    __slots__ = ("_shadows", "reference", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.reference: object | None = None
        """The script's object for this cell, if it has one."""
        self._shadows: dict[Cell, Cell] | None = None

    def shadow_of(self, cell: Cell, zero: Any) -> Cell:
        """Return the shadow of a cell in the run of a backward function that this cell stands for;
        it starts as `zero`."""
        if self._shadows is None:
            self._shadows = {}
        found = self._shadows.get(cell)
        if found is None:
            found = self._shadows[cell] = Cell(zero)
        return found

    def __repr__(self) -> str:
        return f"Cell({self.value!r})"


def tensor_type(value: torch.Tensor, function: str) -> TensorType:
    """Return the type of a tensor. Raises RunError, as of a call of a function, for a dtype that
    programs do not have."""
    name = str(value.dtype).removeprefix("torch.")
    if name not in DTYPES:
        why = f"takes no tensor of dtype {name}; there are {', '.join(DTYPES)}"
        raise RunError(WrongCall(function, NOWHERE, why))
    return TensorType(tuple(Dim.of(int(n)) for n in value.shape), DTYPES[name])


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
