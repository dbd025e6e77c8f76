"""Lists at the border: Python's own and the prelude's outside, chains of tuples inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ...prelude.values import List

Chain: TypeAlias = tuple[Any, ...]
"""A list in compiled code: `(0, head, tail)` or `(1,)`."""

_NIL: Chain = (1,)


def elements(value: Any) -> Sequence[Any]:
    """Return the elements of a list, outside or inside."""
    if not isinstance(value, tuple):
        return value if isinstance(value, list) else tuple(value)
    found: list[Any] = []
    chain: Any = value
    while len(chain) > 1:
        _, head, chain = chain
        found.append(head)
    return found


def chained(*items: Any) -> Chain:
    """Return elements as compiled code holds them."""
    chain = _NIL
    for item in reversed(items):
        chain = (0, item, chain)
    return chain


def listed(*items: Any) -> List[Any]:
    """Return elements as scripts get them."""
    return List.of(items)
