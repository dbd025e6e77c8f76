"""An error of the program's own names the values."""

from pyrelay import Float, Int, relay


@relay
def power(x: Float, n: Int, name: str) -> Float:
    if n < 0:
        raise ValueError(f"{name!r} must not be negative, but is {n:+d}")
    total = 1.0
    for _ in range(n):
        total *= x
    return total


def main() -> None:
    power(2.0, -3, "n")
