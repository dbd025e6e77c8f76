"""A number is no tensor with a dim."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N,)]) -> Float:
    return x.sum()


def main() -> None:
    """Pass a number."""
    total(3.0)
