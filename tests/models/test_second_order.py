"""Second derivatives of recursive and recurrent models: against torch's, and finite differences."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Model, Tensor, relay
from pyrelay.models.tree_lstm import Rooted, Tree, binary_tree_lstm, child_sum_tree_lstm
from pyrelay.prelude import List
from tests.models.test_recurrent import INPUT, SIZE, code_loss, inputs_of, lstm_code
from tests.models.test_tree_lstm import SIZE as TREE_SIZE
from tests.models.test_tree_lstm import (
    WORDS,
    binary_loss,
    child_sum_loss,
    random_rooted,
    random_tree,
    torch_binary,
    torch_child_sum,
    torch_loss,
)

B, D, H = Dim("B"), Dim("D"), Dim("H")
RATE = 0.1
Loss = Callable[[dict[str, torch.Tensor]], torch.Tensor]


@relay
def binary_stepped(model: Model[binary_tree_lstm], tree: Tree):
    pure = relay.with_params(binary_loss)

    def stepped(params):
        return pure(relay.sgd(params, relay.grad(pure)(params, tree), RATE), tree)

    return relay.value_and_grad(stepped)(model.params)


@relay
def child_sum_stepped(model: Model[child_sum_tree_lstm], tree: Rooted):
    pure = relay.with_params(child_sum_loss)

    def stepped(params):
        return pure(relay.sgd(params, relay.grad(pure)(params, tree), RATE), tree)

    return relay.value_and_grad(stepped)(model.params)


@relay
def lstm_stepped(
    model: Model[lstm_code], inputs: List[Tensor[Float, (B, D)]], start: Tensor[Float, (B, H)]
):
    pure = relay.with_params(code_loss)

    def stepped(params):
        return pure(relay.sgd(params, relay.grad(pure)(params, inputs, start), RATE), inputs, start)

    return relay.value_and_grad(stepped)(model.params)


def check(model: Any, value: Any, grads: Any, loss: Loss) -> None:
    """Compare a loss after one step of descent, and its gradient before it, with torch's and with
    differences along a direction, in double precision."""
    w = {k: v.detach().double().requires_grad_() for k, v in model.named_parameters()}

    def after(w: dict[str, torch.Tensor]) -> torch.Tensor:
        grads = torch.autograd.grad(loss(w), list(w.values()), create_graph=True, allow_unused=True)
        moved = (v if g is None else v - RATE * g for v, g in zip(w.values(), grads, strict=True))
        return loss(dict(zip(w, moved, strict=True)))

    expected = after(w)
    torch.testing.assert_close(value.double(), expected.detach(), rtol=1e-4, atol=1e-5)
    wanted = torch.autograd.grad(expected, list(w.values()), allow_unused=True)
    torch.manual_seed(0)
    ways = {k: torch.randn_like(v) for k, v in w.items()}
    step = 1e-5

    def along(distance: float) -> float:
        moved = {k: (v + distance * ways[k]).detach().requires_grad_() for k, v in w.items()}
        return float(after(moved).detach())

    ours = dict(zip(w, torch_leaves(grads), strict=True))
    slope = sum(float((ours[k].double() * ways[k]).sum()) for k in w)
    assert slope == pytest.approx((along(step) - along(-step)) / (2 * step), rel=1e-3, abs=1e-4)
    for name, grad in zip(w, wanted, strict=True):
        zero = torch.zeros_like(w[name])
        torch.testing.assert_close(
            ours[name].double(), zero if grad is None else grad, rtol=1e-3, atol=1e-4
        )


def torch_leaves(tree: Any) -> list[torch.Tensor]:
    return [tree] if isinstance(tree, torch.Tensor) else [t for p in tree for t in torch_leaves(p)]


@pytest.mark.parametrize("leaves", [1, 2, 6])
def test_the_binary_tree_lstm_is_differentiated_twice(leaves: int) -> None:
    model = relay.create_model(binary_tree_lstm, seed=1, words=WORDS, size=TREE_SIZE)
    tree = random_tree(random.Random(leaves), leaves)
    value, grads = binary_stepped(model, tree)
    check(model, value, grads, lambda w: torch_loss(torch_binary(w, tree)))


@pytest.mark.parametrize("nodes", [1, 2, 6])
def test_the_child_sum_tree_lstm_is_differentiated_twice(nodes: int) -> None:
    model = relay.create_model(child_sum_tree_lstm, seed=1, words=WORDS, size=TREE_SIZE)
    tree = random_rooted(random.Random(nodes), nodes)
    value, grads = child_sum_stepped(model, tree)
    check(model, value, grads, lambda w: torch_loss(torch_child_sum(w, tree)))


@pytest.mark.parametrize("length", [1, 4])
def test_the_lstm_is_differentiated_twice(length: int) -> None:
    model = relay.create_model(lstm_code, seed=1, dims={D: INPUT, H: SIZE})
    inputs, start = inputs_of(length), torch.randn(2, SIZE)
    value, grads = lstm_stepped(model, inputs, start)

    def loss(w: dict[str, torch.Tensor]) -> torch.Tensor:
        hidden = memory = start.to(w["lstm_cell.from_input.weight"].dtype)
        for x in inputs:
            gates = torch.nn.functional.linear(
                x.to(hidden.dtype), w["lstm_cell.from_input.weight"], w["lstm_cell.from_input.bias"]
            ) + torch.nn.functional.linear(
                hidden, w["lstm_cell.from_state.weight"], w["lstm_cell.from_state.bias"]
            )
            entry, forget, new, leave = gates.chunk(4, 1)
            memory = torch.sigmoid(forget) * memory + torch.sigmoid(entry) * torch.tanh(new)
            hidden = torch.sigmoid(leave) * torch.tanh(memory)
        return (hidden**2).sum()

    check(model, value, grads, loss)
