"""A property is read without parentheses."""

from __future__ import annotations

from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Line:
    slope: Float

    @property
    def angle(self) -> Float:
        return relay.atan(self.slope)


@relay
def angle(line: Line) -> Float:
    return line.angle()
