"""Operators of a group of the namespace, written as one word and without the group."""

from pyrelay import Dim, Float, Int, Tensor, relay

N = Dim("N")


@relay
def one_word(x: Tensor[Float, (N,)], key: Tensor[Int, (2,)]) -> Tensor[Float, (N,)]:
    return x + relay.random_uniform(key, x.shape)


@relay
def without(lr: float) -> Float:
    optimizer = relay.adam(lr=lr)
    return optimizer
