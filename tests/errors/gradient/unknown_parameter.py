"""`wrt` names no parameter."""

from pyrelay import Float, relay


@relay
def area(width: Float, height: Float) -> Float:
    return width * height


@relay
def use(x: Float):
    return relay.grad(area, wrt="heigth")(x, x)
