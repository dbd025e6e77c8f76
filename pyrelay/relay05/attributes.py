"""The kinds of attributes that Relay's operators have, and the normal form of each.

A kind gets the name of an attribute and what a text says, and gives the normal form or refuses the
call by that name. Every attribute of every operator has one, so no value passes unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias, final

from ..dataclass import dataclass
from ..ir.op import Missing
from ..ir.types import DTYPES, DType

REQUIRED: Final = Missing.REQUIRED


class Refused(Exception):  # noqa: N818  becomes a diagnostic at the call
    """Raised for a call whose attributes have no meaning here; the message continues after the
    operator's name."""

    def __init__(self, message: str, help: str | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.message = message
        self.help = help


def refuse(message: str, help: str | None = None) -> NoReturn:  # noqa: A002
    """Raise Refused: a call asks for something that is not supported."""
    raise Refused(message, help)


_EMPTY: Final = (None, "", ())

Converter: TypeAlias = Callable[[str, Any], Any]


@final
@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an operator: its kind, and its default unless a call must give it."""

    kind: Converter
    default: Any = REQUIRED


def optional(kind: Converter, default: Any = None) -> Attribute:
    """Build an attribute that may be None, or a string without characters."""
    return Attribute(
        lambda name, value: None if value in (None, "") else kind(name, value), default
    )


def flag(name: str, value: Any) -> bool:
    """Return a truth value, which old texts write as 0 or 1."""
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    refuse(f"needs True or False as `{name}`")


def integers(name: str, value: Any) -> tuple[int, ...]:
    """Return one integer or several as a tuple."""
    items = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(i, int) and not isinstance(i, bool) for i in items):
        refuse(f"needs integers as `{name}`")
    return items


def integer(name: str, value: Any) -> int:
    """Return one integer, which may stand alone in brackets."""
    items = integers(name, value)
    if len(items) != 1:
        refuse(f"needs one integer as `{name}`")
    return items[0]


def cuts(name: str, value: Any) -> int | tuple[int, ...]:
    """Return a number of parts, or the places between them."""
    return integers(name, value) if isinstance(value, tuple) else integer(name, value)


def pairs(name: str, value: Any) -> tuple[tuple[int, ...], ...]:
    """Return pairs of integers."""
    found = tuple(integers(name, pair) for pair in value) if isinstance(value, tuple) else ()
    if not found or any(len(pair) != 2 for pair in found):
        refuse(f"needs pairs of integers as `{name}`")
    return found


def number(name: str, value: Any) -> int | float:
    """Return a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    refuse(f"needs a number as `{name}`")


def text(name: str, value: Any) -> str:
    """Return a string."""
    if isinstance(value, str):
        return value
    refuse(f"needs a string as `{name}`")


def word(*known: str) -> Converter:
    """Build the kind of one of some words."""

    def kind(name: str, value: Any) -> str:
        if value in known:
            return value
        refuse(
            f"is not supported with `{name}={attribute_text(value)}`",
            f"write one of {', '.join(map(attribute_text, known))}",
        )

    return kind


def dtype(name: str, value: Any) -> DType:
    """Return a dtype, given as one or by its name."""
    known = {**DTYPES, "int": DTYPES["int32"], "float": DTYPES["float32"]}
    if isinstance(value, DType):
        return value
    if not isinstance(value, str):
        refuse(f"needs a dtype as `{name}`")
    if value not in known:
        refuse(f"has the dtype `{value}`, which is not supported")
    return known[value]


def only(allowed: Any) -> Attribute:
    """Build an attribute of which one value is supported, its default."""

    def kind(name: str, value: Any) -> Any:
        both_empty = allowed in _EMPTY and value in _EMPTY
        if not both_empty and (type(value) is not type(allowed) or value != allowed):
            refuse(f"is supported with `{name}={attribute_text(allowed)}` only")
        return allowed

    return Attribute(kind, allowed)


def attribute_text(value: Any) -> str:
    """Return an attribute as a text writes it."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(map(attribute_text, value))}]"
    return str(value)
