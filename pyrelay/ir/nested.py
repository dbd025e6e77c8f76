"""Nested tuples, such as the attributes of calls, and their leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(value: Any) -> Iterator[Any]:
    """Return the parts of a value that are no tuples, left to right."""
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, tuple):
            pending += reversed(current)
        else:
            yield current


def map_nested(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with everything in it that is no tuple changed, left to right."""
    if isinstance(value, tuple):
        return tuple(map_nested(part, change) for part in value)
    return change(value)
