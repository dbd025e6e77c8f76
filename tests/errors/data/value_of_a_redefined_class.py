from dataclasses import dataclass

from pyrelay import Float, relay


@dataclass(frozen=True)
class Point:
    x: Float


old = Point(1.0)


@dataclass(frozen=True)
class Point:
    x: Float


@relay
def read(p: Point) -> Float:
    return p.x


def main() -> None:
    read(old)
