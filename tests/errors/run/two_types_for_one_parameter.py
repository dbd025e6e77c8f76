"""A list of integers and a float are passed for one type parameter."""

from typing import TypeVar

from pyrelay import relay
from pyrelay.prelude import List

T = TypeVar("T")


@relay
def put(xs: List[T], x: T) -> List[T]:
    return [x] + xs


def main() -> None:
    put([1, 2], 3.0)
