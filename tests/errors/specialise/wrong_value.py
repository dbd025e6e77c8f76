"""A value of another type is fixed."""

from pyrelay import Float, Int, relay


@relay
def power(x: Float, exponent: Int) -> Float:
    return 1.0 if exponent == 0 else x * power(x, exponent - 1)


def main() -> None:
    relay.specialise(power, exponent=2.5)
