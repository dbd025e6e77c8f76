"""Compiled code specialises a function, which scripts do."""

from pyrelay import Float, Int, relay


@relay
def power(x: Float, n: Int) -> Float:
    return x if n <= 1 else x * power(x, n - 1)


@relay
def cube(x: Float) -> Float:
    return relay.specialise(power, n=3)(x)


def main() -> None:
    cube.check()
