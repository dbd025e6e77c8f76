"""A default that a function makes is written out."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyrelay import Float, relay


@dataclass(frozen=True)
class Settings:
    size: Float
    rest: tuple[Float, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class Counter:
    start: Float = field(default_factory=float)


@relay
def counter() -> Counter:
    return Counter()
