"""Equations between sizes that a function assumes hold in the functions inside it too."""

from __future__ import annotations

import torch

from pyrelay import Dim, Float, Tensor, relay

B, C = Dim("B"), Dim("C")


@relay
def mixed(x: Tensor[Float, (B, C)], y: Tensor[Float, (B, C)]) -> Float:
    batch, width = x.shape

    def halves(z: Tensor[Float, (B, C)]):
        return z.reshape(batch, 2, width // 2).transpose(0, 1)

    return (halves(x) * halves(y) * halves(x)).sum()


def test_a_local_function_is_differentiated_under_them() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    torch.testing.assert_close(mixed(x, y), (x * y * x).sum())
    of_x, of_y = relay.grad(mixed)(x, y)
    torch.testing.assert_close(of_x, 2 * x * y)
    torch.testing.assert_close(of_y, x * x)
