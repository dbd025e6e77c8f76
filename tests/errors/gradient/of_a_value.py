"""The gradient of a value instead of a function."""

from pyrelay import Float, relay


@relay
def square(x: Float) -> Float:
    return x * x


def main():
    return relay.grad(square(3.0))
