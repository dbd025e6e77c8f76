"""An iterable whose elements have no type."""

from collections.abc import Iterable

from pyrelay import Float, relay


@relay
def total(data: Iterable) -> Float:
    found = 0.0
    for x in data:
        found += x
    return found
