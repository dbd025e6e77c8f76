"""Calls whose tensors are like those of the call before, which the code in C then looks at no more:
whatever differs is noticed before."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad

from pyrelay import Dim, Float, Model, Tensor, options, relay, relay_model
from pyrelay.lower_c.launching.region import RegionCall

pytestmark = pytest.mark.host("is about C")

N, M = Dim("N"), Dim("M")
Matrix = Tensor[Float, (N, M)]
X = torch.linspace(-1.0, 1.0, 12).reshape(3, 4)


@dataclass(frozen=True)
class Pair:
    """Two matrices."""

    first: Tensor[Float, (3, 4)]
    second: Tensor[Float, (3, 4)]


@relay
def curve(x: Matrix, y: Matrix) -> Matrix:
    return relay.tanh(x * 2.0) + y


@relay
def curve_of(p: Pair) -> Tensor[Float, (3, 4)]:
    return relay.tanh(p.first * 2.0) + p.second


@relay_model
def layer(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(x, out_features=2)


@relay
def loss(x: Tensor[Float, (N, 4)]) -> Float:
    return relay.sum(layer(x) ** 2.0)


@relay
def step(model: Model[layer], x: Tensor[Float, (N, 4)]) -> Float:
    value, grads = relay.value_and_grad(model, loss, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


def expected(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * 2.0) + y


def linear(model: Any, x: torch.Tensor) -> torch.Tensor:
    weight, bias = model.parameters()
    return nn.functional.linear(x, weight, bias)


@pytest.fixture(autouse=True)
def regions() -> Generator[None]:
    with options(lowering="c"):
        yield


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the calls of regions that look at their operands."""
    found: list[object] = []
    call = RegionCall.__call__

    def noted(self: RegionCall, *args: Any) -> Any:
        found.append(self)
        return call(self, *args)

    monkeypatch.setattr(RegionCall, "__call__", noted)
    return found


def settled() -> None:
    """Let the calls of the functions be those of tensors like `X`."""
    for _ in range(4):
        torch.testing.assert_close(curve(X, X.exp()), expected(X, X.exp()))


def test_a_call_like_the_one_before_looks_at_nothing(looking: list[object]) -> None:
    model, trained = relay.create_model(layer), relay.create_model(layer)
    pair = Pair(X, X.exp())

    def every() -> None:
        curve(X, X.exp())
        curve_of(pair)
        curve_of(Pair(X.exp(), X))
        with torch.no_grad():
            model(X)
        model(X)
        relay.value_and_grad(model, loss, (X,))
        step(trained, X)

    for _ in range(4):
        every()
    looking.clear()
    every()
    assert not looking


def test_tensors_that_lie_otherwise() -> None:
    settled()
    y = X.exp()
    others = (
        X.t().contiguous().t(),
        torch.cat([X, X], 1)[:, ::2],
        X[:, 1:2].expand(3, 4),
        torch.complex(X, -X).conj().imag,  # negated where it is read
        nn.Parameter(X, requires_grad=False),
        X.as_subclass(torch.nn.Buffer) if hasattr(torch.nn, "Buffer") else X,
    )
    for x in (*others, torch.randn(5, 2), *others, X):
        other = y if x.shape == y.shape else torch.randn(5, 2)
        torch.testing.assert_close(curve(x, other), expected(x, other))
        torch.testing.assert_close(curve(other, x), expected(other, x))
    for _ in range(3):
        torch.testing.assert_close(curve(X, X), expected(X, X))
        torch.testing.assert_close(curve(y.t(), X.t()), expected(y.t(), X.t()))


def test_fields_that_lie_otherwise() -> None:
    other = X.t().contiguous().t()
    for pair in (Pair(X, X.exp()), Pair(X, X), Pair(other, X), Pair(X, other), Pair(other, other)):
        for _ in range(4):
            torch.testing.assert_close(curve_of(pair), expected(pair.first, pair.second))
    pair = Pair(X.clone(), X.exp())
    for _ in range(4):
        curve_of(pair)
    pair.first.data = other * 2.0
    torch.testing.assert_close(curve_of(pair), expected(pair.first, pair.second))
    leaf = X.clone().requires_grad_()
    curve_of(Pair(leaf, X)).sum().backward()
    torch.testing.assert_close(leaf.grad, 2.0 - 2.0 * torch.tanh(2.0 * X) ** 2)


def test_gradients_of_torch() -> None:
    settled()
    leaf = X.clone().requires_grad_()
    for _ in range(4):
        leaf.grad = None
        curve(leaf, X).sum().backward()
        torch.testing.assert_close(leaf.grad, 2.0 - 2.0 * torch.tanh(2.0 * X) ** 2)
        with torch.no_grad():
            assert not curve(leaf, X).requires_grad
        assert not curve(X, X.exp()).requires_grad


@pytest.mark.filterwarnings("ignore:.*jit.script:DeprecationWarning")
def test_what_torch_does_with_calls() -> None:
    settled()
    y = X.exp()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert curve(X, y).dtype == torch.float32
    for _ in range(4):
        with torch.inference_mode():
            found = curve(X, y)
        torch.testing.assert_close(found, expected(X, y))
        torch.testing.assert_close(curve(X, y), expected(X, y))
    stacked = torch.stack([X, y])
    mapped = torch.func.vmap(curve)(stacked, stacked)
    torch.testing.assert_close(mapped, expected(stacked, stacked))
    slope = 2.0 - 2.0 * torch.tanh(2.0 * X) ** 2
    ones = torch.ones_like(X)
    torch.testing.assert_close(torch.func.jvp(lambda x: curve(x, y), (X,), (ones,))[1], slope)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, ones)
        tangent = forward_ad.unpack_dual(curve(dual, y)).tangent
    torch.testing.assert_close(tangent, slope)


def test_models_that_are_otherwise() -> None:
    model, other = relay.create_model(layer), relay.create_model(layer, seed=1)
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: model.eval(),
        lambda: model.linear_1.weight.data.mul_(2.0),
        lambda: setattr(model.linear_1.weight, "data", torch.randn(4, 2).t()),
        lambda: model.linear_1.weight.requires_grad_(False),
        lambda: setattr(model.linear_1, "weight", nn.Parameter(torch.randn(2, 4))),
        lambda: model.load_state_dict(other.state_dict()),
        lambda: model.linear_1.weight.requires_grad_(True),
    ]
    for change in changes:
        change()
        for _ in range(4):
            for each in (model, other, copy.deepcopy(model)):
                found = each(X)
                torch.testing.assert_close(found, linear(each, X))
                assert found.requires_grad
                with torch.no_grad():
                    torch.testing.assert_close(each(X), linear(each, X))


def test_steps_move_the_model_that_they_are_given() -> None:
    models = [relay.create_model(layer, seed=seed) for seed in range(3)]
    frozen = models[2]
    for turn in range(5):
        frozen.linear_1.bias.requires_grad_(turn % 2 == 0)
        for model in models:
            other = copy.deepcopy(model)
            weight, bias = other.parameters()
            (linear(other, X) ** 2.0).sum().backward()
            step(model, X)
            for parameter, moved in zip(model.parameters(), (weight, bias), strict=True):
                slope = 0.0 if moved.grad is None else moved.grad
                torch.testing.assert_close(parameter.detach(), moved.detach() - 0.1 * slope)


def test_hooks_are_called() -> None:
    model = relay.create_model(layer)
    for _ in range(4):
        model(X)
    seen: list[str] = []
    handles = [
        model.register_forward_pre_hook(lambda *_: seen.append("before")),
        model.register_forward_hook(lambda *_: seen.append("behind")),
        nn.modules.module.register_module_forward_hook(lambda *_: seen.append("all")),
        model.register_full_backward_hook(lambda *_: seen.append("backward")),
    ]
    leaf = X.clone().requires_grad_()
    model(leaf).sum().backward()
    assert sorted(seen) == ["all", "backward", "before", "behind"]
    for handle in handles:
        handle.remove()
    model(leaf).sum().backward()
    assert len(seen) == 4
    model.forward = lambda x: x + 1.0
    torch.testing.assert_close(model(X), X + 1.0)


def test_a_hook_may_call_the_model_again() -> None:
    model = relay.create_model(layer)
    inner: dict[int, torch.Tensor] = {}
    longer = torch.randn(3, 4)
    for _ in range(4):
        model(X)

    def again(*_: object) -> None:
        rows = len(inner) + 1
        if rows <= 3:
            inner[rows] = X
            inner[rows] = model(longer[:rows])

    model.register_forward_hook(again)
    torch.testing.assert_close(model(X), linear(model, X))
    for rows, found in inner.items():
        torch.testing.assert_close(found, linear(model, longer[:rows]))


def test_threads_that_call_with_other_shapes() -> None:
    settled()

    def work(size: int) -> None:
        for _ in range(200):
            x = torch.full((size, size + 1), float(size))
            torch.testing.assert_close(curve(x, x + 1.0), expected(x, x + 1.0))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(1, 9)))
