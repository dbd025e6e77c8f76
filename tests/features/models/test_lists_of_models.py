"""Lists of models: iterated, indexed, differentiated and updated, in programs and from scripts."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Dim, Float, Model, Optimizer, RunError, Tensor, relay, relay_model
from pyrelay.prelude import List

N = Dim("N")
Total = Tensor[Float, (2, 1)]
X = torch.linspace(-1.0, 1.0, 6).reshape(2, 3)


@relay_model
def net(x: Tensor[Float, (N, 3)], *, bias: bool = True) -> Tensor[Float, (N, 1)]:
    return relay.tanh(relay.linear(x, out_features=1, bias=bias))


@relay
def mean_of(models: List[Model[net]], x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    total = relay.zeros((x.shape[0], 1))
    for model in models:
        total = total + model(x)
    return total / len(models)


@relay
def loss(models: list[Model[net]], x: Tensor[Float, (N, 3)]) -> Float:
    return relay.mean((mean_of(models, x) - 1.0) ** 2)


def made(count: int = 3) -> tuple[list[Model[net]], list[torch.nn.Linear]]:
    models = [relay.create_model(net, seed=seed) for seed in range(count)]
    plain = [torch.nn.Linear(3, 1) for _ in models]
    for model, module in zip(models, plain, strict=True):
        state = model.state_dict()
        module.load_state_dict({n.removeprefix("linear_1."): v for n, v in state.items()})
    return models, plain


def plain_loss(modules: list[torch.nn.Linear], x: torch.Tensor) -> torch.Tensor:
    total = sum((torch.tanh(m(x)) for m in modules), torch.zeros(2, 1))
    return ((total / len(modules) - 1.0) ** 2).mean()


def expect_equal(models: list[Model[net]], modules: list[torch.nn.Linear]) -> None:
    for model, module in zip(models, modules, strict=True):
        assert torch.allclose(model.linear_1.weight, module.weight, atol=1e-6)
        assert torch.allclose(model.linear_1.bias, module.bias, atol=1e-6)


def test_a_script_passes_a_list() -> None:
    models, modules = made()
    expected = plain_loss(modules, X)
    assert torch.allclose(loss(models, X), expected)
    assert torch.allclose(loss.interpret(models, X), expected)
    assert torch.allclose(loss(models[:1], X), plain_loss(modules[:1], X))


@relay
def parts(models: list[Model[net]], x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    first = models[0]
    all_of_them = [each(x) for each in models]
    some = mean_of(models[1:], x)
    called = [f(x) for f in [models[-1], first]]
    weighted = relay.zeros_like(some)
    for i, model in enumerate(models):
        weighted = weighted + (i + 1) * model(x)
    return (
        first(x)
        + models[1](x)
        + relay.sum(relay.stack(all_of_them), dim=0)
        + (some + called[0] + weighted)
    )


def test_elements_and_slices_are_models() -> None:
    models, modules = made()
    a, b, c = (torch.tanh(m(X)) for m in modules)
    expected = a + b + (a + b + c) + (b + c) / 2 + c + (a + 2 * b + 3 * c)
    assert torch.allclose(parts(models, X), expected, atol=1e-6)


@relay
def step(models: list[Model[net]], x: Tensor[Float, (N, 3)]) -> Float:
    value, grads = relay.value_and_grad(models, loss, (models, x))
    relay.update_model_params(models, grads, lr=0.1)
    return value


@relay
def step_each(models: list[Model[net]], x: Tensor[Float, (N, 3)]) -> Float:
    value, grads = relay.value_and_grad(models, lambda y: loss(models, y), (x,))
    for model, grad in zip(models, grads):
        relay.update_model_params(model, grad * 0.5, lr=0.2)
    return value


def test_a_program_differentiates_in_a_list_and_updates_it() -> None:
    for program in (step, step_each):
        models, modules = made()
        optimizer = torch.optim.SGD([p for m in modules for p in m.parameters()], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            expected = plain_loss(modules, X)
            expected.backward()
            optimizer.step()
            assert torch.allclose(program(models, X), expected, atol=1e-6)
        expect_equal(models, modules)


@relay
def adam_step(models: list[Model[net]], optimizer: Optimizer, x: Tensor[Float, (N, 3)]) -> Float:
    value, grads = relay.value_and_grad(models, loss, (models, x))
    relay.update_model_params(models, grads, optimizer=optimizer)
    return value


def test_each_model_has_a_memory_of_its_own() -> None:
    models, modules = made()
    optimizer = relay.optim.adam(lr=0.05)
    plain = torch.optim.Adam([p for m in modules for p in m.parameters()], lr=0.05)
    for _ in range(3):
        plain.zero_grad()
        plain_loss(modules, X).backward()
        plain.step()
        adam_step(models, optimizer, X)
    expect_equal(models, modules)


def test_a_script_differentiates_in_a_list_and_updates_it() -> None:
    models, modules = made()
    value, grads = relay.value_and_grad(models, loss, (models, X))
    expected = plain_loss(modules, X)
    expected.backward()
    assert torch.allclose(value, expected)
    for found, module in zip(grads, modules, strict=True):
        assert module.weight.grad is not None
        assert torch.allclose(found["linear_1.weight"], module.weight.grad, atol=1e-6)
    relay.update_model_params(models, grads, lr=0.1)
    torch.optim.SGD([p for m in modules for p in m.parameters()], lr=0.1).step()
    expect_equal(models, modules)


@relay
def made_inside(x: Tensor[Float, (N, 3)]) -> tuple[Float, Float]:
    models = [relay.create_model(net, seed=0), relay.create_model(net, seed=1)]
    optimizer = relay.optim.sgd(lr=0.1)
    before = loss(models, x)
    grads = relay.grad(models, loss, (models, x))
    relay.update_model_params(models, grads, optimizer=optimizer)
    return before, loss(models, x)


def test_a_program_makes_a_list() -> None:
    _, modules = made(2)
    before, after = made_inside(X)
    expected = plain_loss(modules, X)
    expected.backward()
    torch.optim.SGD([p for m in modules for p in m.parameters()], lr=0.1).step()
    assert torch.allclose(before, expected)
    assert torch.allclose(after, plain_loss(modules, X), atol=1e-6)


def test_a_list_is_of_models_made_alike() -> None:
    models, _ = made(2)
    with pytest.raises(RunError, match=r"got list\[a Model, a Model, float\] as `models`"):
        loss([*models, 1.0], X)
    with pytest.raises(RunError, match="got a Model as `models`"):
        loss(models[0], X)
    with pytest.raises(RunError, match="models of different hyper-parameters"):
        loss([models[0], relay.create_model(net, bias=False)], X)


def test_results_that_may_be_arguments_share_nothing_with_them() -> None:
    @relay
    def summed(models: list[Model[net]], x: Tensor[Float, (2, 3)], y: Total) -> Total:
        for model in models:
            y = y + model(x)
        return y

    models, modules = made(2)
    start = torch.zeros(2, 1)
    expected = sum((torch.tanh(m(X)) for m in modules), start)
    assert torch.allclose(summed(models, X, start), expected)
    summed([], X, start).add_(1.0)
    assert torch.equal(start, torch.zeros(2, 1))
