"""A carried name grows with every iteration."""

from pyrelay import Float, Tensor, relay


@relay
def grow(x: Tensor[Float, (3,)], times: int):
    for _ in range(times):
        x = relay.cat((x, x))
    return x
