"""A size of a call is divided by a size that is 0."""

import torch

from pyrelay import Dim, Float, Tensor, relay

N, K, M = Dim("N"), Dim("K"), Dim("M")


@relay
def rows(x: Tensor[Float, (N * K,)], w: Tensor[Float, (K,)]):
    return relay.reshape(x, (N, K)) @ w


@relay
def of_all(x: Tensor[Float, (M,)], w: Tensor[Float, (K,)]):
    return rows(x, w)


def main() -> None:
    """Pass no weights."""
    of_all(torch.ones(6), torch.ones(0))
