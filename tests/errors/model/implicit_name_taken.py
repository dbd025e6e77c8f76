"""A parameter with the name of an implicit value that the function needs."""

from pyrelay import Float, relay

rate = relay.implicit("rate", Float)


@relay
def decayed(x: Float) -> Float:
    return x * rate


@relay
def main(x: Float, rate: Float) -> Float:
    return decayed(x) * rate
