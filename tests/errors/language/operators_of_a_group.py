"""Operators of a group of the namespace, written as one word and without the group."""

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def noisy(x: Tensor[Float, (N,)], key: Tensor[Int, (2,)]) -> Tensor[Float, (N,)]:
    optimizer = relay.adam(lr=0.1)
    return x + relay.random_uniform(key, x.shape)
