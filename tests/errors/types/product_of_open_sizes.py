"""Sizes that only the running program knows are multiplied, and other ones do not fit."""

from pyrelay import Float, Int, Tensor, relay


@relay
def product(n: Int) -> Tensor[Float, (2, 2)]:
    return relay.zeros((n, 2)) @ relay.ones((3, n))
