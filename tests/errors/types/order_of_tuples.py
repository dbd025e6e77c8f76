"""Tuples and data in the place of numbers, in operators of Python."""

from dataclasses import dataclass

from pyrelay import Float, Int, relay


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float


@relay
def compared(a: tuple[Int, Int], b: tuple[Int, Int], p: Point, q: Point):
    return a < b, a >= b, a * 2, p + q
