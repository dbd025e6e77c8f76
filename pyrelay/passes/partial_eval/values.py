"""The domain of partial evaluation: values that are unknown, known, or known in part.

Every value has an *atom* that stands for it in the residual program. A value that is `Made` is data
or a tuple whose constructor is known, whatever is known of its fields; functions are data here,
since the program is first-order, so a static function is one of these.

A value in which only the structure counts is a *pattern of binding times*: its unknown parts are
the parameters of a function specialised to it. Nothing recurses on the depth of a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.expr import Constant, Constructor, Expr
from ...ir.traverse import Steps


@final
@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """A value of which nothing is known."""

    atom: Expr


@final
@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A number, bool, string or tensor that is known."""

    atom: Constant


@final
@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """Data by its constructor, or a tuple (then `constructor` is None), with the fields.

    `weight` is the number of values in it, each counted as often as it occurs.
    """

    atom: Expr
    constructor: Constructor | None
    fields: tuple[Value, ...]
    weight: int

    def is_alike(self, other: Made) -> bool:
        """Return whether two values are made by one constructor."""
        if self.constructor is None or other.constructor is None:
            return self.constructor is other.constructor
        return self.constructor.name == other.constructor.name


Value: TypeAlias = Unknown | Known | Made


def made(atom: Expr, constructor: Constructor | None, fields: Sequence[Value]) -> Made:
    """Return a value by its constructor and its fields."""
    weight = 1 + sum(weight_of(field) for field in fields)
    return Made(atom, constructor, tuple(fields), weight)


def weight_of(value: Value) -> int:
    """Return the number of values in a value."""
    return value.weight if isinstance(value, Made) else 1


def is_static(value: Value) -> bool:
    """Return whether anything is known of a value; that it is unit says nothing."""
    return (
        isinstance(value, Known) or (isinstance(value, Made) and value.weight > 1) or _is_tag(value)
    )


def _is_tag(value: Value) -> bool:
    return isinstance(value, Made) and value.constructor is not None


Key: TypeAlias = tuple[object, ...]
"""A pattern of binding times, as something to compare and to look up."""

_HOLE: Final = "?"


def key_of(values: Sequence[Value]) -> Key:
    """Return the structure of values: equal for values that differ in their unknown parts alone."""
    found: list[object] = []
    pending: list[Value] = list(reversed(values))
    while pending:
        value = pending.pop()
        match value:
            case Unknown():
                found.append(_HOLE)
            case Known(atom):
                found.append(token(atom))
            case Made(_, constructor, fields):
                found.append((None if constructor is None else constructor.name, len(fields)))
                pending += reversed(fields)
    return tuple(found)


def token(constant: Constant) -> object:
    """Return the key that two constants share if they are the same value, bit by bit."""
    value = constant.value
    bits = value.hex() if isinstance(value, float) else value
    return type(value), bits, constant.ty


def is_whole(values: Sequence[Value]) -> bool:
    """Return whether values are known with all their parts."""
    pending = list(values)
    while pending:
        match pending.pop():
            case Unknown():
                return False
            case Known():
                pass
            case Made(_, _, fields):
                pending += fields
    return True


def holes(pattern: Value, value: Value) -> list[Value]:
    """Return the parts of a value at the unknown parts of a pattern that it fits, in order."""
    found: list[Value] = []
    pending = [(pattern, value)]
    while pending:
        match pending.pop():
            case Unknown(), part:
                found.append(part)
            case Made(_, _, shape), Made(_, _, fields):
                pending += reversed(list(zip(shape, fields, strict=True)))
            case _:
                pass
    return found


def common(left: Value, right: Value) -> Steps[Value]:
    """Return the most specific pattern that two values fit."""
    if left is right:
        return left
    match left, right:
        case Known(a), Known(b) if token(a) == token(b):
            return left
        case Made(atom, constructor, first), Made(_, _, second) if left.is_alike(right):
            fields: list[Value] = []
            for one, other in zip(first, second, strict=True):
                fields.append((yield common(one, other)))
            return made(atom, constructor, fields)
        case _:
            return Unknown(left.atom)


def differ(values: Sequence[Value]) -> bool:
    """Return whether branches give data that is known, and not alike, somewhere in their values:
    constructors or strings, which decide what a program does with them."""
    pending = [tuple(values)]
    while pending:
        parts = pending.pop()
        if not parts or all(part is parts[0] for part in parts):
            continue
        alike = [p for p in parts if isinstance(p, Made)]
        if len(alike) == len(parts) and all(alike[0].is_alike(p) for p in alike):
            pending += zip(*(p.fields for p in alike), strict=True)
        elif any(map(_decides, parts)) and len({key_of((p,)) for p in parts}) > 1:
            return True
    return False


def _decides(value: Value) -> bool:
    if isinstance(value, Known):
        return isinstance(value.atom.value, str)
    return isinstance(value, Made) and value.constructor is not None


def descends(before: Sequence[Value], after: Sequence[Value]) -> bool:
    """Return whether a part of what is known becomes smaller from one call to the next: data by its
    weight, an integer towards zero."""
    return any(_is_smaller(a, b) for a, b in zip(before, after, strict=True))


def _is_smaller(before: Value, after: Value) -> bool:
    match before, after:
        case Known(a), Known(b):
            old, new = a.value, b.value
            return isinstance(old, int) and isinstance(new, int) and 0 <= new < old
        case Made(), Made():
            return after.weight < before.weight
        case _:
            return False
