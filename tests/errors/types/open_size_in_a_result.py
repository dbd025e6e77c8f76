"""The result has an open size, and another second one than the annotation says."""

from pyrelay import Any, Float, Tensor, relay


@relay
def same(x: Tensor[Float, (Any, 3)]) -> Tensor[Float, (Any, 4)]:
    return x
