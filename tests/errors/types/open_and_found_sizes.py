"""A loop changes a size that the annotation leaves open into one that the program finds."""

from pyrelay import Any, Float, Int, Tensor, relay


@relay
def kept(x: Tensor[Float, (Any,)], n: Int):
    positive = x[x > 0]
    for _ in range(n):
        x = positive
    return x
