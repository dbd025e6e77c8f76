"""`has_aux` says that a pair is returned."""

from pyrelay import Float, relay


@relay
def loss(x: Float) -> Float:
    return x * x


@relay
def use(x: Float):
    return relay.value_and_grad(loss, has_aux=True)(x)
