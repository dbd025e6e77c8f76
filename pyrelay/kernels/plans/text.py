"""Pieces of the text of kernels, with brackets only where the precedence of Python needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

_BINDINGS: Final = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 0),
    "|": 1,
    "^": 2,
    "&": 3,
    "<<": 4,
    ">>": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "//": 6,
    "%": 6,
}
_UNARY: Final = 7
_ATOM: Final = 8


@final
@dataclass(frozen=True, slots=True)
class Text:
    """An expression, and how tightly its outermost operator binds."""

    text: str
    binding: int = _ATOM

    def __str__(self) -> str:
        return self.text

    def inside(self, binding: int) -> str:
        """Return the text as an operand that must bind so tightly."""
        return self.text if self.binding >= binding else f"({self.text})"

    @property
    def atom(self) -> str:
        """The text where a method may follow."""
        return self.inside(_ATOM)


def infix(left: Text, sign: str, right: Text) -> Text:
    """Return an operation between two expressions; comparisons are not chained."""
    binding = _BINDINGS[sign]
    return Text(f"{left.inside(binding or 1)} {sign} {right.inside(binding + 1)}", binding)


def behind(address: str, places: Text) -> Text:
    """Return the address so many places behind another; what a sum has is added one by one, so that
    numbers come to the address before blocks of places do."""
    if places.text == "0":
        return Text(address)
    return Text(f"{address} + {places.inside(_BINDINGS['+'])}", _BINDINGS["+"])


def negative(operand: Text) -> Text:
    """Return an expression with its sign changed."""
    return Text(f"-{operand.inside(_UNARY)}", _UNARY)


def call(function: str, *operands: Text | str) -> Text:
    """Return a call."""
    return Text(f"{function}({', '.join(map(str, operands))})")
