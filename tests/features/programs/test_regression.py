"""Regression as a first script: a small network, an optimiser, minibatches and a held-out loss."""

from __future__ import annotations

import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

N = Dim("N")


@relay_model
def network(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N,)]:
    h = relay.relu(relay.linear(x, out_features=16))
    return relay.linear(h, out_features=1).squeeze(1)


@relay
def mean_squared_error(x: Tensor[Float, (N, 3)], y: Tensor[Float, (N,)]) -> Float:
    error = network(x) - y
    return (error**2).mean()


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 3, generator=generator)
    return x, (x[:, 0] - 2 * x[:, 1]).sin()


def test_minibatches_with_adam_follow_torch() -> None:
    x, y = data()
    model = relay.create_model(network, seed=1)
    twin = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    twin.load_state_dict(dict(zip(twin.state_dict(), model.state_dict().values(), strict=True)))
    adam = relay.optim.adam(lr=1e-2)
    torch_adam = torch.optim.Adam(twin.parameters(), lr=1e-2)
    for step in range(40):
        rows = slice(step % 4 * 16, step % 4 * 16 + 16)
        value, grads = relay.value_and_grad(model, mean_squared_error, (x[rows], y[rows]))
        relay.update_model_params(model, grads, optimizer=adam)
        torch_adam.zero_grad()
        expected = (twin(x[rows]).squeeze(1) - y[rows]).square().mean()
        expected.backward()
        torch_adam.step()
        torch.testing.assert_close(value, expected.detach(), rtol=1e-3, atol=1e-4)
    before = relay.create_model(network, seed=1).bind(mean_squared_error)(x, y)
    assert model.bind(mean_squared_error)(x, y) < 0.7 * before


def test_the_same_script_with_an_optimiser_of_torch_takes_the_same_steps() -> None:
    x, y = data()
    ours, theirs = (relay.create_model(network, seed=2) for _ in range(2))
    adam, torch_adam = relay.optim.adam(lr=1e-2), torch.optim.Adam(theirs.parameters(), lr=1e-2)
    for _ in range(10):
        for model, optimizer in ((ours, adam), (theirs, torch_adam)):
            grads = relay.grad(model, mean_squared_error, (x, y))
            relay.update_model_params(model, grads, optimizer=optimizer)
    for name, weight in ours.named_parameters():
        torch.testing.assert_close(weight, theirs.get_parameter(name))
