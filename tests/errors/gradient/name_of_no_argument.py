"""What a transform makes has the parameters of its function."""

from pyrelay import Float, relay


@relay
def loss(weight: Float, target: Float) -> Float:
    return (weight - target) ** 2


@relay
def use(x: Float) -> Float:
    return relay.grad(loss, wrt="weight")(x, targets=x)
