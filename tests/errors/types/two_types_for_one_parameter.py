"""A list of integers and a float meet in one type parameter."""

from typing import TypeVar

from pyrelay import Float, relay
from pyrelay.prelude import List

T = TypeVar("T")


@relay
def put(xs: List[T], x: T) -> List[T]:
    return [x] + xs


@relay
def counted(xs: List[int], x: Float) -> List[int]:
    return put(xs, x)
