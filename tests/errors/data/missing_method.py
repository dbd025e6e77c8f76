"""A record has no method of this name."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Line:
    slope: Float

    def at(self, x: Float) -> Float:
        return self.slope * x


@relay
def value(line: Line) -> Float:
    return line.att(1.0)
