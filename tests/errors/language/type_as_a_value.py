"""A type variable that is a size is a number in the body; one that is a type is nothing there."""

from __future__ import annotations

from typing import TypeVar

from pyrelay import Float, Tensor, relay

N, T = TypeVar("N"), TypeVar("T")


@relay
def rows(x: Tensor[Float, (N,)], y: T) -> Float:
    return x.sum() * N + T
