"""A value was made before its class was defined again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    x: Float


old: Any = Point(1.0)


@dataclass(frozen=True)
class Point:  # noqa: F811
    x: Float


@relay
def same(p: Point) -> Point:
    return p


def main() -> None:
    same(old)
