"""A tensor of the script is used without saying that it is constant."""

import torch

from pyrelay import Float, Tensor, relay


weights = torch.ones(3)


@relay
def weighted(x: Tensor[Float, (3,)]) -> Tensor[Float, (3,)]:
    return x * weights
