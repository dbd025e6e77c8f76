"""A random tensor without a key."""

from pyrelay import Float, Tensor, relay


@relay
def noise() -> Tensor[Float, (3,)]:
    return relay.random.uniform((3,))
