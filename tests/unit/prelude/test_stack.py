"""`relay.stack` of a list: a tensor with a size of its own, and derivatives of any order."""

from __future__ import annotations

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Int, RunError, Tensor, relay

N = Dim("N")


@relay
def attended(w: Tensor[Float, (3,)], x: Tensor[Float, (N, 3)]) -> Float:
    states = [relay.tanh(row * w) for row in x]
    keys = relay.stack(states)
    weights = relay.softmax(keys @ w, 0)
    context = weights @ keys
    return (context * relay.stack([s[0] for s in states]).sum()).sum()


@relay
def squared_gradient(w: Tensor[Float, (3,)], x: Tensor[Float, (N, 3)]) -> Float:
    return (relay.grad(attended, wrt="w")(w, x) ** 2).sum()


W = torch.tensor([0.4, -0.7, 0.2])


@pytest.mark.parametrize("rows", [1, 4])
def test_values_and_gradients_are_torchs(rows: int) -> None:
    x = torch.linspace(-1, 1, rows * 3).reshape(rows, 3)
    torch.testing.assert_close(attended(W, x), attended.__wrapped__(W, x))
    torch.testing.assert_close(attended.interpret(W, x), attended.__wrapped__(W, x))
    w, y = W.clone().requires_grad_(), x.clone().requires_grad_()
    attended.__wrapped__(w, y).backward()
    ours = relay.grad(attended)(W, x)
    torch.testing.assert_close(ours, (w.grad, y.grad))


def test_second_derivatives_are_torchs() -> None:
    x = torch.linspace(-1, 1, 12).reshape(4, 3)
    w = W.clone().requires_grad_()
    (first,) = torch.autograd.grad(attended.__wrapped__(w, x), w, create_graph=True)
    (wanted,) = torch.autograd.grad((first**2).sum(), w)
    torch.testing.assert_close(relay.grad(squared_gradient, wrt="w")(W, x), wanted)


def test_one_program_serves_all_lengths() -> None:
    @relay
    def powers(x: Float, n: Int) -> Tensor[Float, (N,)]:
        found = [x]
        for _ in range(n):
            found.append(found[-1] * x)
        return relay.stack(found)

    for n in (0, 1, 5):
        wanted = torch.tensor([2.0 ** (k + 1) for k in range(n + 1)])
        torch.testing.assert_close(powers(torch.tensor(2.0), n), wanted)
    assert powers.cache_info().entries == 1


def test_along_another_dim() -> None:
    @relay
    def columns(x: Tensor[Float, (N, 3)]) -> Float:
        return (relay.stack([row * 2 for row in x], dim=1)[0] * x[:, 1]).sum()

    x = torch.rand(4, 3)
    torch.testing.assert_close(columns(x), (2 * x[:, 0] * x[:, 1]).sum())
    y = x.clone().requires_grad_()
    (2 * y[:, 0] * y[:, 1]).sum().backward()
    torch.testing.assert_close(relay.grad(columns)(x), y.grad)


def test_nothing_to_stack() -> None:
    @relay
    def none(x: Tensor[Float, (N, 3)]) -> Float:
        return relay.stack([row for row in x if row[0] > 9.0]).sum()

    for run in (none, none.interpret):
        with pytest.raises(RunError, match="the list is empty") as caught:
            run(torch.rand(2, 3))
        assert "this needs an element" in str(caught.value)


def test_what_is_no_tensor_is_refused() -> None:
    @relay
    def pairs(x: Float) -> Float:
        return relay.stack([(x, x) for _ in range(2)]).sum()

    with pytest.raises(CheckError, match="takes a list of tensors"):
        pairs.check()
