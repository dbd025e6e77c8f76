"""A field takes what it is annotated with."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, Tensor, relay


@dataclass(frozen=True)
class Point:
    x: Float
    y: Tensor[Float, (3,)]


@relay
def origin(x: Float) -> Point:
    return Point(x, x)
