"""A float where an integer is declared."""

from pyrelay import Float, Int, relay


@relay
def scaled(x: Float, times: Int) -> Float:
    return x * times


def main():
    return scaled(2.0, 1.5)
