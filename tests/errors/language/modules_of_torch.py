"""Layers of torch, made inside and outside."""

from torch import nn

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


layer = nn.Linear(4, 2)


@relay
def forward(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 2)]:
    other = nn.Linear(4, 2)
    return layer(x) + other(x)
