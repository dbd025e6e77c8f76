"""Tuples and data in the place of numbers, in operators of Python."""

from dataclasses import dataclass

from pyrelay import Bool, Float, Int, relay


@dataclass(frozen=True)
class Point:
    x: Float
    y: Float


@relay
def earlier(a: tuple[Int, Int], b: tuple[Int, Int]) -> Bool:
    return a <= b


@relay
def scaled(a: tuple[Int, Int], factor: Int) -> tuple[Int, Int]:
    return a * factor


@relay
def moved(a: Point, b: Point) -> Point:
    return a + b
