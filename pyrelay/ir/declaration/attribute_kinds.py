"""The kinds of static attributes: what an attribute may be, and its one normal form.

A kind returns the normal form of a value from a program, a text or a document, or raises a
TypeError that describes the kind. A *number that is a size* is an integer or a dim that
only the running program knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ..dims import Dim
from ..types import DType

Converter: TypeAlias = Callable[[Any], Any]


def optional(kind: Converter) -> Converter:
    """Return the kind that None is of, too."""
    return lambda value: None if value is None else kind(value)


def flag(value: Any) -> bool:
    """Return True or False."""
    if isinstance(value, bool):
        return value
    raise TypeError("it is True or False")


def flags(value: Any) -> tuple[bool, ...]:
    """Return a tuple of truths."""
    if isinstance(value, tuple | list):
        return tuple(map(flag, value))
    raise TypeError("it is a tuple of True and False")


def text(value: Any) -> str:
    """Return a string."""
    if isinstance(value, str):
        return value
    raise TypeError("it is a string")


def texts(value: Any) -> tuple[str, ...]:
    """Return a tuple of strings."""
    if isinstance(value, tuple | list):
        return tuple(map(text, value))
    raise TypeError("it is a tuple of strings")


def word(*known: str) -> Converter:
    """Return the kind of one of some words."""

    def kind(value: Any) -> str:
        if isinstance(value, str) and value in known:
            return value
        raise TypeError(f"it is one of {', '.join(known)}")

    return kind


def named(value: Any) -> tuple[tuple[str, Any], ...]:
    """Return values by name, as pairs."""
    if isinstance(value, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in value
    ):
        return value
    raise TypeError("it is a tuple of names and values")


def dtype(value: Any) -> DType:
    """Return a dtype."""
    if isinstance(value, DType):
        return value
    raise TypeError("it is a dtype")


def static(value: Any) -> Any:
    """Return a constant dim as a plain integer and anything else as it is."""
    if isinstance(value, Dim) and value.constant is not None:
        return value.constant
    return value


def whole(value: Any) -> int:
    """Return an integer that is known."""
    value = static(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError("it is an integer that is known before the program runs")


def axis(value: Any) -> int:
    """Return the number of a dim, counted from the end if negative."""
    value = static(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError("a dim is named by a whole number")


def axes(value: Any) -> tuple[int, ...]:
    """Return the numbers of one dim or of several."""
    return tuple(map(axis, value)) if isinstance(value, tuple | list) else (axis(value),)


def size(value: Any) -> int | Dim:
    """Return a number that is a size."""
    value = static(value)
    if isinstance(value, int | Dim) and not isinstance(value, bool):
        return value
    raise TypeError("it is an integer or a size")


def sizes(value: Any) -> tuple[int | Dim, ...]:
    """Return one size or several as a tuple."""
    return tuple(map(size, value)) if isinstance(value, tuple | list) else (size(value),)


def at_least(least: int, kind: Converter) -> Converter:
    """Return the kind whose numbers, if they are known, are not below `least`."""

    def convert(value: Any) -> Any:
        found = kind(value)
        parts: tuple[Any, ...] = found if isinstance(found, tuple) else (found,)
        if any(isinstance(part, int) and part < least for part in parts):
            raise TypeError(f"it is at least {least}")
        return found

    return convert


_COUNTS: Final = {
    1: "one integer",
    2: "one integer or a pair of integers",
    3: "one integer or three",
}


def each_of(count: int, part: Converter = size) -> Converter:
    """Return the kind of the arguments of windows over `count` dims: a tuple with a value for each,
    or one value, which stands for all."""

    def convert(value: Any) -> tuple[Any, ...]:
        items = tuple(value) if isinstance(value, tuple | list) else (value,)
        if len(items) not in (1, count):
            raise TypeError(f"it is {_COUNTS[count]}")
        return tuple(map(part, items * count if len(items) == 1 else items))

    return convert


single = each_of(1)
pair = each_of(2)
triple = each_of(3)


def tuple_of(part: Converter) -> Converter:
    """Return the kind of the tuples whose items are all of one kind."""

    def convert(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, tuple | list):
            raise TypeError("it is a tuple")
        return tuple(map(part, value))

    return convert


def dim(value: Any) -> Dim:
    """Return a size as a dim."""
    return Dim.of(size(value))


def factors(value: Any) -> tuple[Dim, Dim]:
    """Return the two sizes of a product."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError("it is a pair of sizes")
    return (dim(value[0]), dim(value[1]))


def shape(value: Any) -> tuple[Dim, ...]:
    """Return a shape as a tuple of dims: the normal form of every size attribute."""
    items = value if isinstance(value, tuple | list) else (value,)
    try:
        return tuple(map(dim, items))
    except TypeError:
        raise TypeError("a shape is a tuple of integers and sizes") from None


def number(value: Any) -> float | Dim:
    """Return a number, which may be a size."""
    value = static(value)
    if isinstance(value, int | float | Dim) and not isinstance(value, bool):
        return value
    raise TypeError("it is a number")


def scalar(value: Any) -> bool | float | Dim:
    """Return a number or a truth."""
    return value if isinstance(value, bool) else number(value)


def real(value: Any) -> float:
    """Return a number that is known, as a float."""
    value = static(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise TypeError("it is a number that a float can hold") from None
    raise TypeError("it is a number that is known before the program runs")


def reals(value: Any) -> tuple[float, ...]:
    """Return one number or several that are known, as floats."""
    return tuple(map(real, value)) if isinstance(value, tuple | list) else (real(value),)
