"""The type arguments of a program's entry in one call, read off the arguments.

A function with type parameters takes values of any type without looking into them. Where the
program has to look, as a gradient has, the entry is instantiated: the type of what was passed takes
the place of each type parameter. Sizes stay open, so one instance serves tensors of every size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.source import Span
from ...ir.dims import Dim, DimVar
from ...ir.transforms import Axes
from ...ir.types import (
    STR,
    UNIT,
    UNKNOWN,
    AdtType,
    DType,
    Substitution,
    TensorType,
    TupleType,
    Type,
)
from ...prelude.library import LIST
from ...prelude.names import CONSTRUCTORS
from ..data.data import DataTypes
from ..types.annotation import NUMBERS
from ..types.number_places import Numbers, together

if TYPE_CHECKING:
    from ..source.unions import Namespace


@final
@dataclass(frozen=True, slots=True)
class Plain:
    """A number, bool or string of Python, or None: its class."""

    cls: type


@final
@dataclass(frozen=True, slots=True)
class TensorOf:
    """A tensor."""

    rank: int
    dtype: DType


@final
@dataclass(frozen=True, slots=True)
class TupleOf:
    """A tuple."""

    fields: tuple[Described, ...]


@final
@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; of an empty one it is not known what its elements are."""

    element: Described | None


@final
@dataclass(frozen=True, slots=True)
class DataOf:
    """An instance of a dataclass, and the arguments of its data type that its value determines;
    sizes are None."""

    cls: type
    args: tuple[Described | None, ...]


Described: TypeAlias = Plain | TensorOf | TupleOf | ListOf | DataOf


def is_whole(described: Described | None) -> bool:
    """Return whether nothing in a description is open."""
    match described:
        case None | ListOf(None):
            return False
        case ListOf(element):
            return is_whole(element)
        case TupleOf(parts) | DataOf(_, parts):
            return all(p is not None and is_whole(p) for p in parts)
        case _:
            return True


def numbers_in(described: Described | None) -> Numbers:
    """Return where in a value numbers are Python's own: where they are in what was passed."""
    match described:
        case Plain(cls) if cls in NUMBERS:
            return cls
        case TupleOf(parts) | DataOf(_, parts):
            return together(map(numbers_in, parts))
        case ListOf(element):
            return together((numbers_in(element),))
        case _:
            return None


def element_of(described: Described | None, axes: Axes) -> Described | None:
    """Return the description of one of the values that are side by side in a value, or in a list of
    them."""
    match described:
        case _ if axes is None:
            return described
        case TensorOf(rank, dtype):
            return TensorOf(max(rank - 1, 0), dtype)
        case ListOf(element):
            return element
        case TupleOf(fields):
            each = axes if isinstance(axes, tuple) else (axes,) * len(fields)
            inside = [element_of(f, a) for f, a in zip(fields, each, strict=False)]
            return TupleOf(tuple(f for f in inside if f is not None))
        case DataOf(cls, args):
            return DataOf(cls, tuple(element_of(a, 0) for a in args))
        case _:
            return described


def instantiation(
    found: Mapping[str, Described], data: DataTypes, seen: Namespace, span: Span
) -> Substitution:
    """Return the types that type parameters stand for. Raises NotData for a class that is none."""
    types: dict[str, Type] = {}
    for name, described in found.items():
        sizes = (Dim.of(f"size {n} of {name}") for n in count(1))
        types[name] = _Reader(data, seen, span, sizes).type(described)
    return Substitution({}, types)


@final
class _Reader:
    """Return the type argument of one type parameter; its sizes are named after the parameter."""

    def __init__(self, data: DataTypes, seen: Namespace, span: Span, sizes: Iterator[Dim]) -> None:
        self._data: Final = data
        self._seen: Final = seen
        self._span: Final = span
        self._sizes: Final = sizes

    def type(self, described: Described | None) -> Type:
        """Return a type, unknown where the description is open."""
        match described:
            case None:
                return UNKNOWN
            case Plain(cls):
                return NUMBERS.get(cls) or (STR if cls is str else UNIT)
            case TensorOf(rank, dtype):
                return TensorType(tuple(next(self._sizes) for _ in range(rank)), dtype)
            case TupleOf(fields):
                return TupleType(tuple(map(self.type, fields)))
            case ListOf(element):
                return AdtType(LIST, (self.type(element),))
            case DataOf(cls, args) if cls in CONSTRUCTORS:
                return AdtType(CONSTRUCTORS[cls].adt, tuple(map(self.type, args)))
            case DataOf(cls, args):
                known = self._data.of_class(cls, self._seen, self._span)
                pairs = zip(known.params, args, strict=True)
                inside = (
                    next(self._sizes) if isinstance(p, DimVar) else self.type(a) for p, a in pairs
                )
                return AdtType(known.name, tuple(inside))
