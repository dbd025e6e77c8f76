"""A loop over data that is captured, not passed."""

import torch

from pyrelay import Float, relay

batches = [(torch.ones(3), 1), (torch.ones(2), 0)]


@relay
def total(start: Float) -> Float:
    found = start
    for x, y in batches:
        found += x.sum() * y
    return found
