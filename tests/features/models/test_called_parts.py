"""A model inside a model is called like a model of its own; the site of an operator is not."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, RunError, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def encoder(x: Tensor[Float, (N, 3)], *, width: int = 4) -> Tensor[Float, (N, 2)]:
    h = relay.dropout(relay.tanh(relay.linear(x, out_features=width)), p=0.5)
    return relay.linear(h, out_features=2)


@relay_model
def decoder(z: Tensor[Float, (N, 2)]) -> Tensor[Float, (N, 3)]:
    return relay.batch_norm(relay.linear(z, out_features=3))


@relay_model
def autoencoder(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
    return decoder(encoder(x, width=5))


@relay_model
def around(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
    return autoencoder(x) + x


def model() -> Any:
    return relay.create_model(autoencoder, seed=0).eval()


def test_parts_compose_to_the_model() -> None:
    whole, x = model(), torch.randn(4, 3)
    torch.testing.assert_close(whole.decoder(whole.encoder(x)), whole(x))
    nested = relay.create_model(around, seed=0).eval()
    torch.testing.assert_close(
        nested.autoencoder.decoder(nested.autoencoder.encoder(x)) + x, nested(x)
    )


def test_gradients_reach_the_parameters_of_the_part() -> None:
    whole, z = model(), torch.randn(4, 2)
    (whole.decoder(z) ** 2).sum().backward()
    layer = whole.decoder.linear_1
    assert layer.weight.grad is not None
    assert whole.encoder.linear_1.weight.grad is None


def test_a_part_has_the_mode_of_its_model_and_keeps_its_state() -> None:
    whole, z = model(), torch.randn(8, 2)
    norm = whole.decoder.batch_norm_1
    before = norm.running_mean.clone()
    whole.decoder(z)
    assert torch.equal(norm.running_mean, before)
    whole.train()
    whole.decoder(z)
    assert not torch.equal(norm.running_mean, before)


def test_copies_have_parts_of_their_own() -> None:
    whole, z = model(), torch.randn(4, 2)
    for other in (copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):
        torch.testing.assert_close(other.decoder(z), whole.decoder(z))
        with torch.no_grad():
            other.decoder.linear_1.weight.zero_()
        assert not torch.equal(other.decoder(z), whole.decoder(z))


def test_arguments_of_a_part_are_checked() -> None:
    with pytest.raises(RunError, match="dimension 1 of `z` is 5, not 2"):
        model().decoder(torch.ones(4, 5))


def test_the_site_of_an_operator_is_refused() -> None:
    with pytest.raises(
        RunError, match=r"`decoder.linear_1` of `autoencoder` cannot be called"
    ) as caught:
        model().decoder.linear_1(torch.ones(4, 2))
    assert caught.value.codes == ("RL419",)
