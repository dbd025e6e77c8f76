"""What a type parameter stands for is not known where the function is written."""

from __future__ import annotations

from typing import TypeVar

from pyrelay import relay
from pyrelay.prelude import List

T = TypeVar("T")


@relay
def same(xs: List[T], ys: List[T]) -> bool:
    return relay.equal(xs, ys)
