"""Data types are nominal: values of two of them are never equal."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay
from pyrelay.prelude import List


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float


@relay
def same(p: Point, q: List[Float]) -> bool:
    return relay.equal(p, q)
