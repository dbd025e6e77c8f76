"""A character RNN: trained on a text, and sampled from with a temperature and a key."""

from __future__ import annotations

from typing import Any

import torch

from pyrelay import Dim, Float, Int, Tensor, relay, relay_model

T = Dim("T")
TEXT = "the cat sat on the mat. the dog sat on the log. "
LETTERS = sorted(set(TEXT))
VOCABULARY, HIDDEN = len(LETTERS), 24


@relay_model
def step(
    h: Tensor[Float, (HIDDEN,)], letter: Int
) -> tuple[Tensor[Float, (HIDDEN,)], Tensor[Float, (VOCABULARY,)]]:
    x = relay.embedding(letter, num_embeddings=VOCABULARY, embedding_dim=HIDDEN)
    h = relay.tanh(relay.linear(h, out_features=HIDDEN) + relay.linear(x, out_features=HIDDEN))
    return h, relay.linear(h, out_features=VOCABULARY)


@relay
def loss(letters: Tensor[Int, (T,)]) -> Float:
    h = relay.zeros(HIDDEN)
    total = 0
    for here, following in zip(letters[:-1], letters[1:]):
        h, scores = step(h, here)
        total += relay.cross_entropy(scores, following)
    return total / (len(letters) - 1)


@relay
def mean_loss(texts: list[Tensor[Int, (Any,)]]) -> Float:
    total = 0
    for letters in texts:
        total += loss(letters)
    return total / len(texts)


@relay
def draw(scores: Tensor[Float, (VOCABULARY,)], u: Float) -> Int:
    reached = 0
    for i, p in enumerate(relay.softmax(scores, dim=0)):
        reached += p
        if u < reached:
            return i
    return len(scores) - 1


@relay
def sample(first: Int, n: int, key: Tensor[Int, (2,)], temperature: float = 1.0) -> list[Int]:
    h = relay.zeros(HIDDEN)
    letter = first
    drawn = [letter]
    for _ in range(n):
        key, this = relay.random_split(key)
        h, scores = step(h, letter)
        letter = draw(scores / temperature, relay.uniform(this))
        drawn.append(letter)
    return drawn


def encoded() -> torch.Tensor:
    return torch.tensor([LETTERS.index(c) for c in TEXT])


def reference_loss(state: dict[str, torch.Tensor], letters: torch.Tensor) -> torch.Tensor:
    (table, w_h, b_h, w_x, b_x, w_o, b_o) = state.values()
    h = torch.zeros(HIDDEN)
    total = torch.zeros(())
    for here, following in zip(letters[:-1], letters[1:], strict=True):
        h = torch.tanh(w_h @ h + b_h + w_x @ table[here] + b_x)
        total = total + torch.nn.functional.cross_entropy(w_o @ h + b_o, following)
    return total / (len(letters) - 1)


def test_loss_and_gradient_equal_those_of_torch() -> None:
    model = relay.create_model(step, seed=0)
    state = {n: p.detach().clone().requires_grad_() for n, p in model.named_parameters()}
    value, grads = relay.value_and_grad(model, loss, (encoded(),))
    expected = reference_loss(state, encoded())
    expected.backward()
    torch.testing.assert_close(value, expected.detach())
    for name, tensor in state.items():
        torch.testing.assert_close(grads[name], tensor.grad, msg=name)


def test_samples_of_a_trained_model_are_made_of_pairs_of_the_text() -> None:
    model = relay.create_model(step, seed=0)
    adam = relay.optim.adam(lr=0.02)
    for _ in range(60):
        _, grads = relay.value_and_grad(model, loss, (encoded(),))
        relay.update_model_params(model, grads, optimizer=adam)
    letters = model.bind(sample)(LETTERS.index("t"), 60, relay.random_key(3), temperature=0.3)
    text = "".join(LETTERS[int(i)] for i in letters)
    pairs = {TEXT[i : i + 2] for i in range(len(TEXT) - 1)} | {" t"}
    right = sum(text[i : i + 2] in pairs for i in range(len(text) - 1))
    assert len(text) == 61
    assert right >= 55, text


def test_the_same_key_draws_the_same_text() -> None:
    model = relay.create_model(step, seed=0)
    draws = [list(model.bind(sample)(0, 20, relay.random_key(k))) for k in (1, 1, 2)]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


def test_texts_of_several_lengths_are_one_batch() -> None:
    model = relay.create_model(step, seed=0)
    state = {n: p.detach().clone().requires_grad_() for n, p in model.named_parameters()}
    letters = encoded()
    texts = [letters[:5], letters[3:20], letters[:2]]
    value, grads = relay.value_and_grad(model, mean_loss, (texts,))
    expected = torch.stack([reference_loss(state, text) for text in texts]).mean()
    expected.backward()
    torch.testing.assert_close(value, expected.detach())
    for name, tensor in state.items():
        torch.testing.assert_close(grads[name], tensor.grad, msg=name)
