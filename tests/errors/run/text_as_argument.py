"""A string is no tensor."""

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def total(x: Tensor[Float, (N,)]) -> Float:
    return x.sum()


def main() -> None:
    """Pass text."""
    total("1 2 3")
