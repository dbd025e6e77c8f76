"""A function with a derivative of its own captures what is differentiated."""

from pyrelay import Float, relay


@relay
def scaled(x: Float, w: Float) -> Float:
    def value(x: Float) -> Float:
        return x * w

    def fwd(x: Float):
        return x * w, ()

    def bwd(saved: tuple[()], g: Float):
        return g * w

    return relay.custom_vjp(fwd, bwd)(value)(x)


@relay
def slope(w: Float) -> Float:
    return relay.grad(scaled, wrt="w")(2.0, w)
