"""`&`, `|`, `^` and `~` of masks, as in torch."""

from __future__ import annotations

import torch

from pyrelay import Bool, Dim, Float, Tensor, relay

N = Dim("N")


@relay
def combined(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    mask = (x > 0) & ~(y > 1) | (x == y)
    mask |= x > 1.5
    return relay.where(mask, x, y) + x[mask ^ True].sum()


@relay
def of_single_bools(a: bool, b: bool) -> tuple[bool, bool, bool, bool]:
    return a & b, a | b, a ^ b, (a & True) | False


@relay
def all_but_first(x: Tensor[Float, (N,)]) -> Tensor[Bool, (N,)]:
    mask = x > 0
    mask[0] = False
    return ~mask & (x < 2)


def test_masks_are_combined_as_torch_combines_them() -> None:
    x, y = torch.tensor([1.0, -1.0, 2.0, 0.5]), torch.tensor([2.0, -1.0, 0.0, 0.5])
    mask = (x > 0) & ~(y > 1) | (x == y) | (x > 1.5)
    wanted = torch.where(mask, x, y) + x[~mask].sum()
    torch.testing.assert_close(combined(x, y), wanted)
    torch.testing.assert_close(combined.interpret(x, y), wanted)
    assert all_but_first(x).tolist() == [True, True, False, False]


def test_single_bools_are_too() -> None:
    for a in (False, True):
        for b in (False, True):
            assert of_single_bools(a, b) == (a & b, a | b, a ^ b, a)


def test_gradients_go_past_masks() -> None:
    x, y = torch.tensor([1.0, -1.0, 2.0]), torch.tensor([2.0, -1.0, 0.0])

    @relay
    def loss(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Float:
        return (combined(x, y) * 2).sum()

    z = x.clone().requires_grad_()
    mask = (z > 0) & ~(y > 1) | (z == y) | (z > 1.5)
    ((torch.where(mask, z, y) + z[~mask].sum()) * 2).sum().backward()
    torch.testing.assert_close(relay.grad(loss, wrt="x")(x, y), z.grad)
