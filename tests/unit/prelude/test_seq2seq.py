"""A sequence to sequence model with attention over a list of states, against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Float, Int, Tensor, relay, relay_model
from pyrelay.prelude import List

WIDTH, WORDS = 6, 5


@relay_model
def cell(x: Tensor[Float, (WIDTH,)], h: Tensor[Float, (WIDTH,)]) -> Tensor[Float, (WIDTH,)]:
    own = relay.linear(x, out_features=WIDTH, name="input")
    return relay.tanh(own + relay.linear(h, out_features=WIDTH, name="state"))


@relay
def attend(
    query: Tensor[Float, (WIDTH,)], states: List[Tensor[Float, (WIDTH,)]]
) -> Tensor[Float, (WIDTH,)]:
    keys = relay.stack(states)
    return relay.softmax(keys @ query, 0) @ keys


@relay_model
def translate(source: List[Int], target: List[Int]) -> Float:
    table = relay.param((WORDS, WIDTH), name="table")
    states = []
    h = relay.zeros(WIDTH)
    for word in source:
        h = cell(table[word], h)
        states.append(h)
    loss = 0.0
    before = 0
    for word in target:
        h = cell(table[before] + attend(h, states), h)
        logits = relay.linear(h, out_features=WORDS, name="scores")
        loss = loss - relay.log_softmax(logits, 0)[word]
        before = word
    return loss


@relay
def loss(source: List[Int], target: List[Int]) -> Float:
    return translate(source, target)


def in_torch(p: dict[str, torch.Tensor], source: list[int], target: list[int]) -> torch.Tensor:
    def step(prefix: str, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        own = x @ p[f"{prefix}.input.weight"].T + p[f"{prefix}.input.bias"]
        return torch.tanh(own + h @ p[f"{prefix}.state.weight"].T + p[f"{prefix}.state.bias"])

    encoder, decoder = sorted({n.split(".")[0] for n in p if n.count(".") == 2})
    states: list[torch.Tensor] = []
    h = torch.zeros(WIDTH)
    for word in source:
        h = step(encoder, p["table"][word], h)
        states.append(h)
    found = torch.tensor(0.0)
    before = 0
    for word in target:
        keys = torch.stack(states)
        context = torch.softmax(keys @ h, 0) @ keys
        h = step(decoder, p["table"][before] + context, h)
        logits = h @ p["scores.weight"].T + p["scores.bias"]
        found = found - torch.log_softmax(logits, 0)[word]
        before = word
    return found


@pytest.fixture(scope="module")
def model() -> Any:
    return relay.create_model(translate, seed=3)


SENTENCES = [([1, 4, 2], [3, 1]), ([2], [0, 1, 4, 3]), ([0, 1, 2, 3, 4, 0, 1], [2])]


@pytest.mark.parametrize(("source", "target"), SENTENCES)
def test_values_and_gradients_are_torchs(model: Any, source: list[int], target: list[int]) -> None:
    params = {n: v.detach().clone().requires_grad_() for n, v in model.state_dict().items()}
    wanted = in_torch(params, source, target)
    wanted.backward()
    value, grads = relay.value_and_grad(model, loss, (source, target))
    torch.testing.assert_close(value, wanted.detach())
    torch.testing.assert_close(model(source, target), wanted.detach())
    for name, param in params.items():
        torch.testing.assert_close(grads[name], param.grad, rtol=1e-5, atol=1e-5)


def test_one_compilation_serves_all_lengths(model: Any) -> None:
    relay.value_and_grad(model, loss, SENTENCES[0])
    entries = loss.cache_info().entries
    for sentences in SENTENCES[1:]:
        relay.value_and_grad(model, loss, sentences)
    assert loss.cache_info().entries == entries


def test_it_learns_to_copy(model: Any) -> None:
    optimizer = relay.optim.adam(lr=0.02)
    first = float(loss_of(model))
    for _ in range(60):
        for source, _ in SENTENCES:
            _, grads = relay.value_and_grad(model, loss, (source, source))
            relay.update_model_params(model, grads, optimizer=optimizer)
    assert float(loss_of(model)) < 0.2 * first


def loss_of(model: Any) -> torch.Tensor:
    return sum((model(s, s) for s, _ in SENTENCES), torch.tensor(0.0)).detach()


def test_the_exported_model_takes_lists(model: Any) -> None:
    exported = relay.export_model(model)
    for source, target in SENTENCES:
        torch.testing.assert_close(exported(source, target), model(source, target))
