"""What to differentiate in is given by number, as in JAX."""

from pyrelay import Float, relay


@relay
def product(x: Float, y: Float) -> Float:
    return x * y


@relay
def slope(x: Float, y: Float) -> Float:
    return relay.grad(product, argnums=0)(x, y)
