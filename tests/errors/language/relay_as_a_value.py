"""An operator that does not exist, called through a variable."""

from pyrelay import Float, relay


@relay
def apply(x: Float) -> Float:
    f = relay.softplus_
    return f(x)
