"""A named tuple is no data type."""

from __future__ import annotations

from typing import NamedTuple

from pyrelay import Float, relay


class Point(NamedTuple):
    x: Float
    y: Float


@relay
def across(p: Point) -> Float:
    return p.x
