"""A method that another decorator has wrapped is not the function that is written."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Line:
    slope: Float

    @functools.lru_cache
    def at(self, x: Float) -> Float:
        return self.slope * x


@relay
def value(line: Line) -> Float:
    return line.at(1.0)
