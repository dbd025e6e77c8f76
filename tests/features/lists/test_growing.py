"""Values whose size changes in each call of a recursive function: text that a model writes."""

from __future__ import annotations

from typing import Any

import torch

from pyrelay import Dim, Float, Int, Model, Tensor, relay, relay_model

B, T, N = Dim("B"), Dim("T"), Dim("N")


@relay_model
def scores(tokens: Tensor[Int, (B, T)]):
    return relay.linear(relay.embedding(tokens, num_embeddings=9, embedding_dim=4), out_features=9)


@relay
def written(model: Model[scores], tokens: Tensor[Int, (1, T)], n: int) -> Tensor[Int, (1, Any)]:
    if n == 0:
        return tokens
    following = relay.argmax(model(tokens)[:, -1], dim=1)
    return written(model, relay.cat((tokens, following.unsqueeze(1)), dim=1), n - 1)


@relay_model
def halved(x: Tensor[Float, (N,)]) -> Float:
    """A weight for the mean of each half, of each half of it, and so on."""
    if x.shape[0] < 2:
        return relay.sum(x)
    half = x.shape[0] // 2
    weight = relay.param((2,), name="weight")
    means = relay.stack((x[:half].mean(), x[half:].mean()))
    return relay.sum(weight * means) + halved(x[:half]) + halved(x[half:])


def test_a_model_writes_tokens_behind_those_it_reads_compiled_once() -> None:
    model = relay.create_model(scores, seed=0)
    table, weight, bias = model.parameters()
    expected = [1, 2]
    for _ in range(6):
        expected.append(int(torch.argmax(weight @ table[expected[-1]] + bias)))
    before = written.cache_info().misses
    assert written(model, torch.tensor([[1, 2]]), 6).tolist() == [expected]
    assert written(model, torch.tensor([[1, 2, 3]]), 1000).shape == (1, 1003)
    assert written.cache_info().misses == before + 1


def test_a_model_calls_itself_at_other_sizes() -> None:
    model = relay.create_model(halved, seed=0)
    (weight,) = model.parameters()

    def expected(x: torch.Tensor) -> torch.Tensor:
        if len(x) < 2:
            return x.sum()
        left, right = x[: len(x) // 2], x[len(x) // 2 :]
        means = torch.stack((left.mean(), right.mean()))
        return (weight * means).sum() + expected(left) + expected(right)

    x = torch.arange(13.0)
    torch.testing.assert_close(model(x), expected(x))
    (ours,) = torch.autograd.grad(model(x), [weight])
    (theirs,) = torch.autograd.grad(expected(x), [weight])
    torch.testing.assert_close(ours, theirs)
