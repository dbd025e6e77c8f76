"""Two trees of different lengths are mapped over."""

import torch

from pyrelay import relay


def main() -> None:
    """Map."""
    x = torch.ones(2)
    relay.tree_map(lambda a, b: a + b, (x, x), (x,))
