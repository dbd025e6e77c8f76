"""torch's functions are called through the namespace."""

import torch

from pyrelay import Float, relay


@relay
def squash(x: Float) -> Float:
    return torch.tanh(x)
