"""Infix chains: `a + b * c` as the parser gives it, operands and signs in one row, made a tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from lark import Token

T = TypeVar("T")

_STRENGTH: Final = {
    "EQUAL": 1,
    "COMPARE": 2,
    "PLUS": 3,
    "MINUS": 3,
    "STAR": 4,
    "SLASH": 4,
    "FLOORDIV": 4,
    "MOD": 4,
}


def fold_chain(
    chain: Sequence[T | Token], join: Callable[[Token, T, T], T], negate: Callable[[Token, T], T]
) -> T:
    """Return the value of a chain; all signs bind to the left, and a leading minus binds
    tightest."""
    operands: list[T] = []
    waiting: list[Token] = []
    minuses: list[Token] = []
    fresh = True
    for item in chain:
        if not isinstance(item, Token):
            for minus in reversed(minuses):
                item = negate(minus, item)
            minuses.clear()
            operands.append(item)
        elif fresh:
            minuses.append(item)
            continue
        else:
            _reduce(operands, waiting, _STRENGTH[item.type], join)
            waiting.append(item)
        fresh = isinstance(item, Token)
    _reduce(operands, waiting, 0, join)
    return operands[0]


def _reduce(
    operands: list[T], waiting: list[Token], strength: int, join: Callable[[Token, T, T], T]
) -> None:
    while waiting and _STRENGTH[waiting[-1].type] >= strength:
        right = operands.pop()
        operands[-1] = join(waiting.pop(), operands[-1], right)
