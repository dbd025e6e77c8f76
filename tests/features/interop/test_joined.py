"""Calls as nodes of torch's graph: higher orders, what torch watches, the modes around a call."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Model, RunError, Tensor, float64, relay, relay_model
from pyrelay.prelude import List

N = Dim("N")
M = Dim("M")


@relay
def grown(x: Tensor[float64, (N,)], w: Tensor[float64, (N,)]):
    y = x
    while y.sum() < 100.0:
        y = y * y * w + 1.0
    return y, x * w


def _leaves() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.tensor([0.3, 0.7, 0.9], dtype=torch.float64, requires_grad=True)
    w = torch.tensor([1.1, 0.8, 1.3], dtype=torch.float64, requires_grad=True)
    return x, w


def test_orders_of_torchs_autograd() -> None:
    assert torch.autograd.gradcheck(grown, _leaves())
    assert torch.autograd.gradgradcheck(grown, _leaves())


def test_three_orders_agree_with_torch() -> None:
    def third(function: Any) -> list[torch.Tensor]:
        x, w = _leaves()
        y, z = function(x, w)
        (first,) = torch.autograd.grad((y * z).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.pow(2).sum(), w, create_graph=True)
        return [first, second, *torch.autograd.grad(second.sum(), (x, w))]

    torch.testing.assert_close(third(grown), third(grown.__wrapped__))


@relay
def power(x: Tensor[Float, (N,)], n: int) -> Tensor[Float, (Dim("N"),)]:
    if n == 0:
        return relay.ones_like(x)
    return x * power(x, n - 1)


def test_the_gradient_of_a_gradient_goes_through_recursion() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (slope,) = torch.autograd.grad(power(x, 4).sum(), x, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), x)
    torch.testing.assert_close(curvature, 12 * x.detach() ** 2)


@relay
def products(xs: List[Float]) -> List[Float]:
    return [x * x * x for x in xs]


def test_results_and_arguments_may_be_lists() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    first, second = products([x, x]).to_list()
    (slope,) = torch.autograd.grad(first + second, x, create_graph=True)
    (curvature,) = torch.autograd.grad(slope, x)
    assert curvature == 24.0


@relay_model
def critic(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N,)]:
    hidden = relay.tanh(relay.batch_norm(relay.linear(x, out_features=4, name="first")))
    return relay.linear(relay.dropout(hidden), out_features=1, name="last").squeeze(1)


def _penalty(net: Any, x: torch.Tensor) -> torch.Tensor:
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def test_a_gradient_penalty_trains_a_model() -> None:
    model = relay.create_model(critic, seed=0).eval()
    weights = dict(model.named_parameters())

    def by_hand(x: torch.Tensor) -> torch.Tensor:
        hidden = torch.nn.functional.linear(x, weights["first.weight"], weights["first.bias"])
        mean, var = torch.zeros(4), torch.ones(4)
        scale, shift = weights["batch_norm_1.weight"], weights["batch_norm_1.bias"]
        hidden = torch.nn.functional.batch_norm(hidden, mean, var, scale, shift).tanh()
        return torch.nn.functional.linear(hidden, weights["last.weight"]).squeeze(1)

    x = torch.randn(5, 3, requires_grad=True)
    trained = [p for n, p in weights.items() if n != "last.bias"]
    ours = torch.autograd.grad(_penalty(model, x), trained)
    torch.testing.assert_close(ours, torch.autograd.grad(_penalty(by_hand, x), trained))


def test_what_would_happen_twice_is_refused() -> None:
    model = relay.create_model(critic, seed=0).train()
    with pytest.raises(RunError, match="differentiate the gradient of `critic` again"):
        _penalty(model, torch.randn(5, 3, requires_grad=True))


def test_torch_tells_of_inputs_that_were_written_to() -> None:
    leaf, w = _leaves()
    x = leaf * 1.0
    result = grown(x, w)[0].sum()
    with torch.no_grad():
        x.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_torch_tells_of_a_graph_that_was_freed() -> None:
    result = grown(*_leaves())[0].sum()
    result.backward()
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()


def test_results_may_be_written_to() -> None:
    x, w = _leaves()
    _, z = grown(x, w)
    z.mul_(2.0)
    z.sum().backward()
    torch.testing.assert_close(x.grad, 2 * w.detach())


def test_tensors_of_inference_mode_are_taken() -> None:
    with torch.inference_mode():
        x = torch.full((3,), 0.5, dtype=torch.float64)
    w = _leaves()[1]
    grown(x, w)[1].sum().backward()
    torch.testing.assert_close(w.grad, torch.full_like(w, 0.5))


@relay
def product(a: Tensor[Float, (N, M)], b: Tensor[Float, (M, N)]) -> Tensor[Float, (N, N)]:
    return a @ b


def test_autocast_changes_no_dtype() -> None:
    a, b = torch.randn(2, 3, requires_grad=True), torch.randn(3, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = product(a, b)
        assert product(a.detach(), b).dtype == torch.float32
        result.sum().backward()
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, a @ b)
    torch.testing.assert_close(a.grad, b.sum(1).expand(2, 3))


@relay_model
def squashed(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 4)]:
    return relay.tanh(relay.linear(x, out_features=4))


@relay
def moved(model: Model[squashed], x: Tensor[Float, (N, 3)]) -> None:
    grads = relay.grad(model, total, (x,))
    relay.update_model_params(model, grads, lr=0.1)


@relay
def total(x: Tensor[Float, (N, 3)]) -> Float:
    return squashed(x).sum()


def test_torch_tells_of_parameters_that_a_program_has_moved() -> None:
    model, x = relay.create_model(squashed, seed=0), torch.randn(2, 3)
    for _ in range(3):  # the later ones build nothing
        result = model(x).sum()
        moved(model, x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.backward()


def test_results_that_the_gradient_needs_may_be_written_to() -> None:
    model, x = relay.create_model(squashed, seed=0), torch.randn(2, 3)
    params = list(model.parameters())
    for _ in range(3):
        kept = torch.autograd.grad((model(x) * 2.0).sum(), params)
        result = model(x)
        result.mul_(2.0)
        torch.testing.assert_close(torch.autograd.grad(result.sum(), params), kept)


@relay
def halves(x: Tensor[Float, (N,)]) -> tuple[Tensor[Float, (N,)], Tensor[Float, (N,)]]:
    y = relay.exp(x)
    return y, relay.tanh(y)


def test_the_value_of_a_vjp_may_be_written_to() -> None:
    x = torch.tensor([0.5, 1.5])
    (first, second), back = relay.vjp(halves)(x)
    seeds = torch.ones(2), torch.ones(2)
    kept = back(seeds)
    first.zero_()
    second.zero_()
    torch.testing.assert_close(back(seeds), kept)


def test_the_value_of_the_vjp_of_a_recursion_may_be_written_to() -> None:
    x = torch.tensor([0.5, 1.5])
    value, back = relay.vjp(power, wrt="x")(x, 3)
    kept = back(torch.ones(2))
    value.zero_()
    torch.testing.assert_close(back(torch.ones(2)), kept)
