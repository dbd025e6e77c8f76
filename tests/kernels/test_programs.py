"""Whole programs with their tensor code in kernels: the same values as calls of torch give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from examples.lenet.lenet import lenet
from examples.lenet.lenet import loss as lenet_loss
from pyrelay import Dim, Float, Int, Model, Tensor, relay, relay_model
from pyrelay.config import options
from pyrelay.models import mlp as mlps
from pyrelay.models import recurrent, transformer
from pyrelay.models.mlp import mlp
from pyrelay.models.recurrent import gru_cell, lstm_cell
from pyrelay.models.transformer import transformer_block
from pyrelay.models.tree_lstm import Leaf, Node, Tree, binary_tree_lstm
from pyrelay.prelude import List
from tests.kernels.running import DEVICE, IS_INTERPRETED

N, D, B, T, C = Dim("N"), Dim("D"), Dim("B"), Dim("T"), Dim("C")


@relay
def mlp_loss(x: Tensor[Float, (N, D)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(mlp(x, hidden=12), y)


@relay
def block_loss(x: Tensor[Float, (B, T, C)]) -> Float:
    return (transformer_block(x, heads=2, hidden=12) ** 2).mean()


def both_ways(make: Callable[[], Any], step: Callable[[Any], Any]) -> None:
    """Make two equal models, run steps on each, with kernels and with torch, and compare."""
    with_kernels, with_torch = make().to(DEVICE), make().to(DEVICE)
    for _ in range(3 if IS_INTERPRETED else 5):  # later steps are replayed as graphs
        found = step(with_kernels)
        with options(lowering="torch"):
            expected = step(with_torch)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(with_kernels.parameters(), with_torch.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def training(loss: Any, *args: Any) -> Callable[[Any], Any]:
    def step(model: Any) -> Any:
        value, grads = relay.value_and_grad(model, loss, args)
        relay.update_model_params(model, grads, lr=0.1)
        return value

    return step


def test_an_mlp_is_trained() -> None:
    x, y = torch.randn(5, 7).to(DEVICE), torch.randint(0, 10, (5,)).to(DEVICE)
    both_ways(
        lambda: relay.create_model(mlp, seed=0, dims={mlps.D: 7}, hidden=12),
        training(mlp_loss, x, y),
    )


def test_a_transformer_block_is_trained() -> None:
    both_ways(
        lambda: relay.create_model(
            transformer_block, seed=0, dims={transformer.C: 8}, heads=2, hidden=12
        ),
        training(block_loss, torch.randn(2, 3, 8).to(DEVICE)),
    )


@relay_model
def inner(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 5)]:
    return relay.tanh(relay.linear(x, out_features=5))


@relay_model
def outer(x: Tensor[Float, (N, 5)]) -> Tensor[Float, (N, 3)]:
    return relay.layer_norm(relay.linear(x, out_features=3), (3,))


@relay
def joint_loss(x: Tensor[Float, (N, 4)]) -> Float:
    hidden = inner(x)
    return (outer(hidden) ** 3).mean()


@relay
def joint_step(first: Model[inner], second: Model[outer], x: Tensor[Float, (N, 4)]) -> Float:
    value, (mine, others) = relay.value_and_grad((first, second), joint_loss, (x,))
    relay.update_model_params(first, mine, lr=0.1)
    relay.update_model_params(second, others, lr=0.1)
    return value


def test_two_models_are_trained_at_once() -> None:
    x = torch.randn(6, 4).to(DEVICE)

    def make() -> tuple[Any, Any]:
        first, second = relay.create_model(inner, seed=1), relay.create_model(outer, seed=2)
        return first.to(DEVICE), second.to(DEVICE)

    with_kernels, with_torch = make(), make()
    found = joint_step(*with_kernels, x), relay.value_and_grad(with_kernels, joint_loss, (x,))
    with options(lowering="torch"):
        expected = joint_step(*with_torch, x), relay.value_and_grad(with_torch, joint_loss, (x,))
    torch.testing.assert_close(found[0], expected[0])
    torch.testing.assert_close(found[1][0], expected[1][0])
    for one, other in zip(found[1][1], expected[1][1], strict=True):
        for name, gradient in other.items():
            torch.testing.assert_close(one[name], gradient, rtol=1e-4, atol=1e-5)


@relay
def lstm_loss(
    state: tuple[Tensor[Float, (N, 8)], Tensor[Float, (N, 8)]], x: Tensor[Float, (N, 6)]
) -> Float:
    (hidden, memory), _ = lstm_cell(state, x)
    return (hidden * memory).sum()


@relay
def gru_loss(state: Tensor[Float, (N, 8)], x: Tensor[Float, (N, 6)]) -> Float:
    hidden, _ = gru_cell(state, x)
    return (hidden**2).sum()


@pytest.mark.parametrize("rows", [1, 3, 17])
def test_an_lstm_cell_is_trained(rows: int) -> None:
    state = torch.randn(rows, 8), torch.randn(rows, 8)
    both_ways(
        lambda: relay.create_model(lstm_cell, seed=0, dims={recurrent.H: 8, recurrent.D: 6}),
        training(lstm_loss, state, torch.randn(rows, 6)),
    )


def test_a_gru_cell_is_trained() -> None:
    both_ways(
        lambda: relay.create_model(gru_cell, seed=0, dims={recurrent.H: 8, recurrent.D: 6}),
        training(gru_loss, torch.randn(2, 8), torch.randn(2, 6)),
    )


@relay
def tree_loss(tree: Tree) -> Float:
    hidden, _ = binary_tree_lstm(tree, words=10, size=6)
    return hidden.sum()


def test_a_tree_lstm_is_trained() -> None:
    tree = Node(Node(Leaf(3), Leaf(7)), Leaf(1))
    both_ways(
        lambda: relay.create_model(binary_tree_lstm, seed=0, words=10, size=6),
        training(tree_loss, tree),
    )


@pytest.mark.slow
def test_lenet_is_trained() -> None:
    x, y = torch.randn(2, 1, 28, 28).to(DEVICE), torch.randint(0, 10, (2,)).to(DEVICE)
    both_ways(lambda: relay.create_model(lenet, seed=0), training(lenet_loss, x, y))


@relay
def weighted(xs: List[Tensor[Float, (N,)]], decay: Float) -> Float:
    total = 0.0
    for x in xs:
        total = total * decay + relay.tanh(x).sum()
    return total


def test_control_flow_stays_on_the_host() -> None:
    xs, decay = [torch.randn(n).to(DEVICE) for n in (3, 3, 3)], torch.tensor(0.5).to(DEVICE)
    found = relay.value_and_grad(weighted)(xs, decay)
    with options(lowering="torch"):
        expected = relay.value_and_grad(weighted)(xs, decay)
    torch.testing.assert_close(found[0], expected[0])
    torch.testing.assert_close(found[1][1], expected[1][1])


@relay
def rows_at(x: Tensor[Float, (N, D)], i: Tensor[Int, (B,)]):
    wide = i.unsqueeze(-1).expand(i.shape[0], x.shape[1])
    picked = relay.index_select(x, 0, i) + relay.gather(x, 0, wide)
    return picked * relay.embedding(i, x)


def test_nothing_is_read_before_the_first_row() -> None:
    x, i = torch.ones(4, 3).to(DEVICE), torch.tensor([1, -1]).to(DEVICE)
    assert rows_at(x, i).tolist() == [[2.0] * 3, [0.0] * 3]
