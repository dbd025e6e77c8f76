"""No context managers."""

import torch

from pyrelay import Float, relay


@relay
def quiet(x: Float) -> Float:
    with torch.no_grad():
        return x * 2.0
