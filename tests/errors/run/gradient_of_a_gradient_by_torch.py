"""A gradient that torch is to differentiate again, of a function that prints."""

import torch

from pyrelay import Float, relay


@relay
def energy(x: Float) -> Float:
    print(f"x is {x}")
    return x * x * x


def main() -> None:
    """Take the gradient with `create_graph=True`."""
    x = torch.tensor(2.0, requires_grad=True)
    torch.autograd.grad(energy(x), x, create_graph=True)
