"""`values` and `indices` of the operators that give both."""

from __future__ import annotations

import torch

from pyrelay import Dim, Float, Int, Tensor, relay

N, K = Dim("N"), Dim("K")


Tops = tuple[
    Tensor[Float, (K,)], Tensor[Int, (N,)], Float, Tensor[Float, (N, K)], Tensor[Int, (N, K)]
]


@relay
def tops(x: Tensor[Float, (N, K)]) -> Tops:
    return (
        x.max(dim=0).values,
        relay.min(x, dim=1).indices,
        relay.topk(x, 2).values.sum(),
        x.sort(dim=1).values,
        relay.sort(x, dim=1, descending=True).indices,
    )


@relay
def highest(x: Tensor[Float, (N, K)]) -> Float:
    return (x.max(dim=0).values ** 2).sum()


def test_pairs_are_read_by_the_names_of_torch() -> None:
    x = torch.randn(4, 3)
    expected = (
        x.max(dim=0).values,
        x.min(dim=1).indices,
        x.topk(2).values.sum(),
        x.sort(dim=1).values,
        x.sort(dim=1, descending=True).indices,
    )
    for found in (tops(x), tops.interpret(x)):
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, theirs)
    x.requires_grad_()
    (expected_gradient,) = torch.autograd.grad((x.max(dim=0).values ** 2).sum(), x)
    torch.testing.assert_close(relay.grad(highest)(x.detach()), expected_gradient)
