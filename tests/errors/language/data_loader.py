"""The class of a data loader says nothing about its elements."""

from torch.utils.data import DataLoader

from pyrelay import Float, relay


@relay
def total(data: DataLoader) -> Float:
    found = 0.0
    for x in data:
        found += x
    return found
