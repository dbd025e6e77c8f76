"""A number that is the same for all elements of a batch, without `in_axes`."""

import torch

from pyrelay import Float, relay


@relay
def scaled(x: Float, by: Float = 2.0) -> Float:
    return x * by


def main() -> None:
    """Pass a number beside a batch."""
    relay.vmap(scaled)(torch.ones(3), 3.0)
