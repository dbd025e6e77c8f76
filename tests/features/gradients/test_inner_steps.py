"""Gradients through steps of descent: models adapted inside the function that is differentiated."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.func import functional_call, grad_and_value

from pyrelay import CheckError, Dim, Float, Model, Tensor, relay, relay_model

N, M = Dim("N"), Dim("M")


@relay_model
def net(x: Tensor[Float, (N, 1)], *, hidden: int) -> Tensor[Float, (N, 1)]:
    h = relay.tanh(relay.linear(x, out_features=hidden))
    out = relay.linear(h, out_features=1)
    return out  # noqa: RET504  parameters are named after it


@relay
def mse(x: Tensor[Float, (N, 1)], y: Tensor[Float, (N, 1)]) -> Float:
    return ((net(x) - y) ** 2).mean()


def tasks() -> tuple[torch.Tensor, ...]:
    """Return a support set and a query set of another size."""
    generator = torch.Generator().manual_seed(3)
    return tuple(torch.randn(n, 1, generator=generator) for n in (5, 5, 7, 7))


def twin(model: Any) -> torch.nn.Module:
    """Return torch's module with the same weights."""
    made = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    values = [p.detach().clone() for p in model.parameters()]
    made.load_state_dict(dict(zip(made.state_dict(), values, strict=True)))
    return made


def by_torch(model: Any, steps: int, lr: float) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return the loss after inner steps, and its gradient in the weights before them."""
    module = twin(model)
    x1, y1, x2, y2 = tasks()

    def loss(params: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return ((functional_call(module, params, (x,)) - y) ** 2).mean()

    def adapted(params: dict[str, torch.Tensor]) -> torch.Tensor:
        for _ in range(steps):
            grads, _ = grad_and_value(loss)(params, x1, y1)
            params = {k: p - lr * grads[k] for k, p in params.items()}
        return loss(params, x2, y2)

    found, value = grad_and_value(adapted)(dict(module.named_parameters()))
    return value.detach(), [g.detach() for g in found.values()]


@relay
def meta_step(
    model: Model[net],
    x1: Tensor[Float, (N, 1)],
    y1: Tensor[Float, (N, 1)],
    x2: Tensor[Float, (M, 1)],
    y2: Tensor[Float, (M, 1)],
    lr: Float,
    *,
    steps: int,
):
    pure = relay.with_params(mse)

    def adapted(params):
        for _ in range(steps):
            grads = relay.grad(pure)(params, x1, y1)
            params = relay.sgd(params, grads, lr)
        return pure(params, x2, y2)

    return relay.value_and_grad(adapted)(model.params)


@pytest.mark.parametrize("steps", [1, 3])
def test_the_gradient_through_inner_steps_is_that_of_torch_func(steps: int) -> None:
    model = relay.create_model(net, seed=1, hidden=4)
    value, grads = meta_step(model, *tasks(), 0.3, steps=steps)
    expected, expected_grads = by_torch(model, steps, 0.3)
    torch.testing.assert_close(value, expected)
    for ours, theirs in zip(grads, expected_grads, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_meta_learner_learns() -> None:
    @relay
    def train(
        model: Model[net],
        x1: Tensor[Float, (N, 1)],
        y1: Tensor[Float, (N, 1)],
        x2: Tensor[Float, (M, 1)],
        y2: Tensor[Float, (M, 1)],
    ) -> tuple[Float, Float]:
        pure = relay.with_params(mse)

        def adapted(params):
            return pure(relay.sgd(params, relay.grad(pure)(params, x1, y1), 0.1), x2, y2)

        first = adapted(model.params)
        for _ in range(50):
            grads = relay.grad(adapted)(model.params)
            relay.update_model_params(model, grads, lr=0.1)
        return first, adapted(model.params)

    first, last = train(relay.create_model(net, seed=1, hidden=8), *tasks())
    assert float(last) < 0.8 * float(first)


def test_inner_steps_in_a_script() -> None:
    model = relay.create_model(net, seed=1, hidden=4)
    x1, y1, x2, y2 = tasks()
    pure = relay.with_params(mse)
    params = model.params
    for _ in range(3):
        params = relay.sgd(params, relay.grad(pure)(params, x1, y1), 0.3)
    expected, _ = by_torch(model, 3, 0.3)
    torch.testing.assert_close(pure(params, x2, y2), expected)
    tree = (torch.ones(2), (torch.ones(3),))
    moved = relay.sgd(tree, tree, 0.5)
    assert torch.equal(moved[1][0], torch.full((3,), 0.5))


def test_models_of_two_kinds_are_told_apart_by_their_static_arguments() -> None:
    @relay
    def program(x: Tensor[Float, (N, 1)], y: Tensor[Float, (N, 1)]) -> tuple[Float, Float]:
        a = relay.create_model(net, hidden=3)
        b = relay.create_model(net, hidden=2)
        first = relay.with_params(mse, hidden=3)(a.params, x, y)
        return first, relay.with_params(mse, hidden=2)(b.params, x, y)

    x, y, *_ = tasks()
    first, second = program(x, y)
    for value, hidden in ((first, 3), (second, 2)):
        model = relay.create_model(net, hidden=hidden)
        torch.testing.assert_close(value, relay.with_params(mse)(model.params, x, y))


def test_updates_of_a_model_made_inside_are_differentiated() -> None:
    @relay
    def trained(
        x1: Tensor[Float, (N, 1)],
        y1: Tensor[Float, (N, 1)],
        x2: Tensor[Float, (M, 1)],
        y2: Tensor[Float, (M, 1)],
        scale: Float,
    ) -> Float:
        model = relay.create_model(net, hidden=3)
        for _ in range(2):
            grads = relay.grad(model, mse, (x1 * scale, y1))
            relay.update_model_params(model, grads, lr=0.1)
        return relay.with_params(mse)(model.params, x2, y2)

    slope = float(relay.grad(trained, wrt="scale")(*tasks(), 0.5))
    ends = [float(trained(*tasks(), 0.5 + d)) for d in (1e-2, -1e-2)]
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-2, rel=1e-2)


def test_an_update_of_the_model_that_is_differentiated_is_refused() -> None:
    @relay
    def step(model: Model[net], x: Tensor[Float, (N, 1)], y: Tensor[Float, (N, 1)]):
        def inner(a, b):
            grads = relay.grad(model, mse, (a, b))
            relay.update_model_params(model, grads, lr=0.1)
            return mse(a, b)

        return relay.value_and_grad(model, inner, (x, y))

    x, y, *_ = tasks()
    with pytest.raises(CheckError, match=r"relay\.with_params") as caught:
        step(relay.create_model(net, hidden=3), x, y)
    assert caught.value.codes == ("RL100",)
