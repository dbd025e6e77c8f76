"""A type variable stands for any type: what it is declared with would be checked by nobody."""

from __future__ import annotations

from typing import TypeVar

from pyrelay import Float, relay

T = TypeVar("T", bound=float)


@relay
def twice(x: T) -> Float:
    return 2.0
