"""An optional of one type is not one of another."""

from __future__ import annotations

from pyrelay import Float, Tensor, relay


@relay
def half(n: int | None) -> int:
    return 1


@relay
def wrong(x: Tensor[Float, (10, 10)] | None) -> int:
    return half(x)
