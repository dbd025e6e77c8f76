"""`relay.jvp` and `relay.hvp` in directions of the parameters of models, against torch.func."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from pyrelay import Dim, Float, Model, RunError, Tensor, relay, relay_model

# `torch.func.jvp` imports what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

N = Dim("N")
X = Tensor[Float, (N, 3)]
Y = Tensor[Float, (N, 2)]
Named = dict[str, torch.Tensor]


@relay_model
def net(x: X) -> Y:
    return relay.linear(relay.tanh(relay.linear(x, out_features=4)), out_features=2)


@relay_model
def gate(x: X) -> Y:
    return relay.sigmoid(relay.linear(x, out_features=2, bias=False))


@relay
def loss(x: X, y: Y) -> Float:
    return ((net(x) - y) ** 2).mean()


@relay
def gated(x: X, y: Y) -> Float:
    return ((net(x) * gate(x) - y) ** 2).mean()


@relay
def passed(model: Model[net], x: X, y: Y) -> Float:
    return ((model(x) - y) ** 2).mean()


@relay
def loss_and_outputs(x: X, y: Y) -> tuple[Float, Y]:
    found = net(x)
    return ((found - y) ** 2).mean(), found


def by_torch(p: Named, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return ((outputs(p, x) - y) ** 2).mean()


def outputs(p: Named, x: torch.Tensor) -> torch.Tensor:
    hidden = torch.tanh(functional.linear(x, p["linear_1.weight"], p["linear_1.bias"]))
    return functional.linear(hidden, p["linear_2.weight"], p["linear_2.bias"])


def second(of: Callable[..., Any], at: Any, along: Any) -> Any:
    return torch.func.jvp(torch.func.grad(of), (at,), (along,))[1]


def case(seed: int = 0) -> tuple[Any, torch.Tensor, torch.Tensor, Named, Named]:
    torch.manual_seed(seed)
    model = relay.create_model(net, seed=seed)
    at = {k: p.detach() for k, p in model.named_parameters()}
    return (
        model,
        torch.randn(5, 3),
        torch.randn(5, 2),
        at,
        {k: torch.randn_like(p) for k, p in at.items()},
    )


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["mapping", "record", "tuple"])
def test_products_with_the_hessian_in_the_parameters(kind: str) -> None:
    model, x, y, at, v = case()
    given: Any = v
    if kind == "record":
        given = v = dict(relay.grad(model, loss, (x, y)))
        given = relay.grad(model, loss, (x, y))
    if kind == "tuple":
        w = list(v.values())
        given = ((w[0], w[1]), (w[2], w[3]))
    found = relay.hvp(model, loss, (x, y), given)
    close(dict(found), second(lambda p: by_torch(p, x, y), at, v))
    assert float(found.norm()) > 0.0


def test_the_derivative_of_a_loss_along_the_parameters() -> None:
    model, x, y, at, v = case(1)
    expected = torch.func.jvp(lambda p: by_torch(p, x, y), (at,), (v,))
    close(relay.jvp(model, loss, (x, y), v), expected)
    value, tangent, aux = relay.jvp(model, loss_and_outputs, (x, y), v, has_aux=True)
    close((value, tangent, aux), (*expected, outputs(at, x)))


def test_the_derivative_of_what_a_model_gives() -> None:
    model, x, _, at, v = case(2)
    close(relay.jvp(model, net, (x,), v), torch.func.jvp(lambda p: outputs(p, x), (at,), (v,)))


def test_models_that_are_passed() -> None:
    model, x, y, at, v = case(3)
    found = relay.hvp(model, passed, (model, x, y), v)
    close(dict(found), second(lambda p: by_torch(p, x, y), at, v))


def test_two_models_have_a_direction_each() -> None:
    model, x, y, at, v = case(4)
    other = relay.create_model(gate, seed=5)
    ((name, weight),) = other.state_dict().items()
    step = torch.randn_like(weight)

    def reference(both: Any) -> torch.Tensor:
        p, w = both
        return ((outputs(p, x) * torch.sigmoid(functional.linear(x, w)) - y) ** 2).mean()

    expected = second(reference, (at, weight), (v, step))
    found = relay.hvp((model, other), gated, (x, y), (v, {name: step}))
    close((dict(found[0]), found[1][name]), expected)
    pair = relay.jvp((model, other), gated, (x, y), (v, {name: step}))
    close(pair, torch.func.jvp(reference, ((at, weight),), ((v, step),)))


def test_parameters_that_are_values() -> None:
    model, x, y, at, v = case(6)
    pure = relay.with_params(loss)
    record = relay.grad(model, loss, (x, y))
    v = dict(record)
    found = relay.hvp(pure)((model.params, x, y), (record,))
    close(dict(found), second(lambda p: by_torch(p, x, y), at, v))
    expected = torch.func.jvp(lambda p: by_torch(p, x, y), (at,), (v,))
    close(relay.jvp(pure)((model.params, x, y), (record,)), expected)
    with pytest.raises(RunError, match="the direction is a record"):
        relay.jvp(pure)((model.params, x, y), (3.0,))


@relay
def newton_step(model: Model[net], x: X, y: Y, rounds: int) -> Float:
    """Solve `(H + 1) d = g` by conjugate gradients, and move against `d`."""
    gradient = relay.grad(model, loss, (x, y))
    d = gradient * 0.0
    residual = gradient + d
    p = gradient + d
    rest = residual.norm() ** 2
    for _ in range(rounds):
        product = relay.hvp(model, loss, (x, y), p) + p
        curvature = (product + p).norm() ** 2 - (product - p).norm() ** 2
        rate = 4.0 * rest / curvature
        d = d + p * rate
        residual = residual - product * rate
        new = residual.norm() ** 2
        p = residual + p * (new / rest)
        rest = new
    relay.update_model_params(model, d, lr=1.0)
    return residual.norm()


def test_conjugate_gradients_inside_compiled_code_solve_with_the_hessian() -> None:
    model, x, y, at, _ = case(7)
    names = list(at)
    sizes = [at[k].numel() for k in names]

    def flat(w: torch.Tensor) -> torch.Tensor:
        parts = zip(names, w.split(sizes), strict=True)
        return by_torch({k: p.reshape(at[k].shape) for k, p in parts}, x, y)

    start = torch.cat([at[k].flatten() for k in names])
    system = torch.func.hessian(flat)(start) + torch.eye(len(start))
    step = torch.linalg.solve(system, torch.func.grad(flat)(start))
    left = newton_step(model, x, y, 40)
    assert float(left) < 1e-3
    moved = torch.cat([p.detach().flatten() for p in model.parameters()])
    torch.testing.assert_close(moved, start - step, rtol=1e-2, atol=1e-2)


@relay
def inside(model: Model[net], other: Model[gate], x: X, y: Y):
    v = relay.grad((model, other), gated, (x, y))
    return relay.jvp((model, other), gated, (x, y), v), relay.hvp((model, other), gated, (x, y), v)


def test_two_models_inside_compiled_code() -> None:
    model, x, y, _, _ = case(8)
    other = relay.create_model(gate, seed=5)
    v = relay.grad((model, other), gated, (x, y))
    (value, tangent), (first, _) = inside(model, other, x, y)
    close((value, tangent), relay.jvp((model, other), gated, (x, y), v))
    product = relay.hvp((model, other), gated, (x, y), v)
    close(first, product[0].tree)


def test_a_direction_that_does_not_fit_is_refused() -> None:
    model, x, y, _, v = case(9)
    with pytest.raises(RunError, match=r"a direction has an entry like each parameter"):
        relay.hvp(model, loss, (x, y), {k: t[..., :1] for k, t in v.items()})
    with pytest.raises(RunError, match=r"has the dtype and the device"):
        relay.hvp(model, loss, (x, y), {k: t.double() for k, t in v.items()})
    with pytest.raises(RunError, match=r"takes a direction like the gradient"):
        relay.jvp(model, loss, (x, y), 1.0)
    with pytest.raises(RunError, match=r"its arguments and a direction"):
        relay.jvp(model, loss, (x, y))
