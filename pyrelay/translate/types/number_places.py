"""Where in a value Python's own numbers stand: what an annotation says and its type does not.

`int` and `Int` are one type. A result is a Python number where the annotation is `int`, `float`
or `bool`, also in a tuple, behind a type parameter (`Tree[int]`), in a cell or in what a function
gives. The annotation is read twice, the second time with marks in place of these three; `places_of`
keeps the marks and what is around them. `Params[net]` is a tuple in the program, so where records
of parameters stand is kept in the same way, and where a list is annotated `tuple[T, ...]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast, final

from ...annotations import ParamsAnnotation
from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.types import AdtType, FnType, RefType, TupleType, Type, TypeParam, TypeVar

MARKS: Final[dict[Any, Type]] = {n: AdtType(f"python.{n.__name__}") for n in (float, int, bool)}
"""The stand-ins for Python's number types while an annotation is read for its numbers."""

TUPLE_MARK: Final = "python.tuple"
"""The stand-in for the type of lists in `tuple[T, ...]` meanwhile."""


@final
@dataclass(frozen=True, slots=True)
class NumbersOfParts:
    """The numbers in the parts of a value: the fields of a tuple, the type arguments of data, the
    content of a cell, the parameters and then the result of a function."""

    parts: tuple[Numbers, ...]


@final
@dataclass(frozen=True, slots=True)
class Repeated:
    """The numbers in the elements of a list that scripts have as a tuple."""

    element: Numbers


@final
@dataclass(frozen=True, slots=True)
class ArgumentNumbers:
    """The numbers in the type that a type parameter stands for."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Recorded:
    """A record of the parameters of a model, or the gradient of one. It belongs to the model of
    the argument for `parameter`; without one, to that of an argument that fits."""

    of: ParamsAnnotation
    parameter: str | None = None
    is_gradient: bool = False


Numbers: TypeAlias = type | NumbersOfParts | Repeated | ArgumentNumbers | Recorded | None
"""Where in a value numbers are Python's own, tuples are records, and lists are tuples; None:
nowhere."""

_BY_MARK: Final[dict[Type, type]] = {mark: number for number, mark in MARKS.items()}
_BY_NAME: Final[dict[str, type]] = {number.__name__: number for number in _BY_MARK.values()}


def places_of(ty: Type, records: Mapping[Type, Recorded] = MappingProxyType({})) -> Numbers:
    """Return the numbers in values of a type in which marks stand, among them those of
    `records`."""
    if ty in _BY_MARK:
        return _BY_MARK[ty]
    if ty in records:
        return records[ty]
    match ty:
        case TypeVar(name):
            return ArgumentNumbers(name)
        case TupleType(fields):
            return together(places_of(f, records) for f in fields)
        case AdtType(name, (element,)) if name == TUPLE_MARK and not isinstance(element, Dim):
            return Repeated(places_of(element))
        case AdtType(_, args):
            return together(None if isinstance(a, Dim) else places_of(a) for a in args)
        case RefType(value):
            return together((places_of(value),))
        case FnType(params, result):
            return together(places_of(p) for p in (*params, result))
        case _:
            return None


def together(parts: Iterable[Numbers]) -> Numbers:
    """Return the numbers in a value of these parts."""
    found = tuple(parts)
    return NumbersOfParts(found) if any(p is not None for p in found) else None


def parts_of(numbers: Numbers, count: int) -> tuple[Numbers, ...]:
    """Return the numbers in the parts of a value, of which there are `count`."""
    fits = isinstance(numbers, NumbersOfParts) and len(numbers.parts) == count
    return cast("NumbersOfParts", numbers).parts if fits else (None,) * count


def arguments(params: Iterable[TypeParam], numbers: Numbers) -> dict[str, Numbers]:
    """Return the numbers in what each type parameter of data stands for."""
    names = [p.name for p in params]
    return dict(zip(names, parts_of(numbers, len(names)), strict=True))


def filled(numbers: Numbers, given: Mapping[str, Numbers]) -> Numbers:
    """Return the numbers with the type parameters replaced by their types."""
    match numbers:
        case ArgumentNumbers(name):
            return given.get(name)
        case NumbersOfParts(parts):
            return together(filled(p, given) for p in parts)
        case Repeated(element):
            return Repeated(filled(element, given))
        case _:
            return numbers


def gradient_of(numbers: Numbers) -> Numbers:
    """Return the numbers in the gradient of a value."""
    return replace(numbers, is_gradient=True) if isinstance(numbers, Recorded) else numbers


def without_records(numbers: Numbers) -> Numbers:
    """Return the numbers alone."""
    if isinstance(numbers, NumbersOfParts):
        return together(without_records(p) for p in numbers.parts)
    return None if isinstance(numbers, Recorded) else numbers


def records_in(numbers: Numbers) -> Numbers:
    """Return the records alone."""
    if isinstance(numbers, NumbersOfParts):
        return together(records_in(p) for p in numbers.parts)
    return numbers if isinstance(numbers, Recorded) else None


def described(numbers: Numbers) -> Any:
    """Return the numbers as JSON has them; a record is a tuple there."""
    match numbers:
        case ArgumentNumbers(name):
            return {"argument": name}
        case NumbersOfParts(parts):
            return [described(p) for p in parts]
        case Repeated(element):
            return {"tuple": described(element)}
        case None | Recorded():
            return None
        case _:
            return numbers.__name__


def restored(described: Any) -> Numbers:
    """Return the numbers that `described` gave as JSON. Raises KeyError, TypeError."""
    match described:
        case None:
            return None
        case {"argument": str(name)}:
            return ArgumentNumbers(name)
        case {"tuple": element}:
            return Repeated(restored(element))
        case list():
            return together(restored(p) for p in cast("list[Any]", described))
        case _:
            return _BY_NAME[described]
