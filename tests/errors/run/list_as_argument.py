"""A list of numbers is no tensor."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N,)]) -> Float:
    return x.sum()


def main() -> None:
    """Pass a list."""
    total([1.0, 2.0])
