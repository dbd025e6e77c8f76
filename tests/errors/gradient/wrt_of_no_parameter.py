"""A gradient in a parameter that the function does not have."""

import torch

from pyrelay import Float, relay


@relay
def square(x: Float) -> Float:
    return x * x


def main() -> None:
    """Run it."""
    relay.grad(square, wrt="y")(torch.tensor(2.0))
