"""An enum is no data type."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pyrelay import Float, relay


class Colour(Enum):
    RED = 1
    BLUE = 2


@relay
def same(c: Colour) -> Float:
    return 1.0


@dataclass(frozen=True)
class Pen:
    colour: Colour
