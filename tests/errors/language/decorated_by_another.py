"""Another decorator stands between that of the language and the function."""

import torch

from pyrelay import Float, relay


@relay
@torch.no_grad()
def double(x: Float) -> Float:
    return x + x
