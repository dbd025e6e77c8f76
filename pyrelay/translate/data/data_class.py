"""Which classes can be data: frozen dataclasses whose values are nothing but their fields.

Compiled code makes instances without calling the class and reads fields without calling properties,
so whatever would run code of the class is refused.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, Final, NamedTuple, final

from ...diagnostics.catalogue.data import NotADataType
from ...diagnostics.source import Span
from ..source.scope import MISSING
from ..source.source import load_class


@final
class _Factory:
    """The default of a field that a function makes."""

    def __repr__(self) -> str:
        return "<factory>"


FACTORY: Final = _Factory()


class Field(NamedTuple):
    """A field of a dataclass; `default` is MISSING, FACTORY or a value."""

    name: str
    annotation: Any
    default: Any
    keyword_only: bool


class Refusal(NamedTuple):
    """Why a class is no data type, and what to write instead."""

    why: str
    instead: str


def fields_of(cls: type) -> tuple[Field, ...]:
    """Return the fields of a dataclass, in order."""
    found: list[Field] = []
    for field in dataclasses.fields(cls):
        default: Any = MISSING if field.default is dataclasses.MISSING else field.default
        if field.default_factory is not dataclasses.MISSING:
            default = FACTORY
        found.append(Field(field.name, field.type, default, bool(field.kw_only)))
    return tuple(found)


def why_not(cls: type) -> Refusal | None:
    """Return the reason why a class cannot be data; None if it can."""
    if "__dataclass_params__" not in vars(cls):
        return _plain(cls)
    own: Any = vars(cls)["__dataclass_params__"]
    if not own.frozen:
        return Refusal("its instances can change", "write `@dataclass(frozen=True)`")
    bases = [b for b in cls.__mro__[1:] if dataclasses.is_dataclass(b)]
    if bases:
        name = bases[0].__name__
        return Refusal(
            f"it inherits fields from `{name}`",
            f"write the fields out, and join alternatives by a union: `Either = {name} | Other`",
        )
    return _custom(cls, own)


def _plain(cls: type) -> Refusal:
    if issubclass(cls, enum.Enum):
        return Refusal(
            "it is an enum",
            "write a frozen dataclass for each member and join them by a union; single members "
            "can be compared as captured constants",
        )
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return Refusal("it is a named tuple", "write a frozen dataclass with the same fields")
    if dataclasses.is_dataclass(cls):
        return Refusal(
            "it is a subclass of a dataclass", "decorate it with `@dataclass(frozen=True)` itself"
        )
    return Refusal("it is an ordinary class", "decorate it with `@dataclass(frozen=True)`")


def _custom(cls: type, own: Any) -> Refusal | None:
    for name in ("__post_init__", "__new__", "__getattribute__", "__getattr__"):
        if any(name in vars(base) for base in cls.__mro__[:-1] if base.__module__ != "typing"):
            return Refusal(
                f"it defines `{name}`, which compiled code would not call",
                "leave it out, and do its work in a function that makes the value",
            )
    if not own.init:
        return Refusal("it has an `__init__` of its own", "leave out `init=False`")
    for field in dataclasses.fields(cls):
        if not field.init:
            return Refusal(
                f"its field `{field.name}` is no argument of the class", "leave out `init=False`"
            )
    every: Any = getattr(cls, "__dataclass_fields__", {}).values()
    if any(str(f._field_type) == "_FIELD_INITVAR" for f in every):  # noqa: SLF001  no public name
        return Refusal("it has an `InitVar`", "make it a field, or leave it out")
    return None


def refusal(cls: type) -> Callable[[Span], NotADataType] | None:
    """Return the mistake, for a place where a class is mentioned, of using it as data."""
    why = why_not(cls)
    if why is None:
        return None
    return lambda span: NotADataType(span, cls.__name__, *why, place_of(cls, span))


def place_of(cls: type, span: Span, field: str | None = None) -> Span | None:
    """Return where a class, or a field of it, is defined, as far as its text is known."""
    source = load_class(cls, span.file)
    if source is None:
        return None
    return source.head if field is None else source.field(field)
