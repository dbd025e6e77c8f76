"""What is passed to a function that compares values of any type must have an equality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pyrelay import Float, Fn, relay
from pyrelay.prelude import List

T = TypeVar("T")


@dataclass(frozen=True)
class Layer(Generic[T]):
    apply: Fn[[T], T]
    size: int


@relay
def same(a: T, b: T) -> bool:
    return relay.equal(a, b)


@relay
def member(x: T, xs: List[T]) -> bool:
    found = False
    for y in xs:
        found = found or same(x, y)
    return found


@relay
def square(x: Float) -> Float:
    return x * x


@relay
def passes_functions(x: Float) -> bool:
    return same(square, lambda y: x + y)


@relay
def passes_data_with_functions(layer: Layer[Float]) -> bool:
    return member(layer, [layer])
