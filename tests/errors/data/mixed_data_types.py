"""Two data types that look alike are different."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Metres:
    value: Float


@dataclass(frozen=True)
class Feet:
    value: Float


@relay
def double(m: Metres) -> Metres:
    return Metres(m.value * 2)


@relay
def wrong(f: Feet) -> Metres:
    return double(f)
