"""Derivatives that users write, against `torch.autograd.Function` and plain formulas."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Tensor, relay, relay_model
from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.ir.equality import alpha_equal
from pyrelay.text.json import from_json, to_json
from pyrelay.text.printer import to_text

N = Dim("N")


@relay
def bent_fwd(x: Tensor[Float, (N,)], k: Int) -> tuple[Tensor[Float, (N,)], Tensor[Float, (N,)]]:
    return relay.tanh(x) * k, x


@relay
def bent_bwd(saved: Tensor[Float, (N,)], g: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return g * saved * saved * 10.0


@relay.custom_vjp(bent_fwd, bent_bwd)
@relay
def bent(x: Tensor[Float, (N,)], k: Int) -> Tensor[Float, (N,)]:
    return relay.tanh(x) * k


class Bent(torch.autograd.Function):
    """The same rule in torch."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, k: int) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.tanh(x) * k

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grads[0] * x * x * 10.0, None


@relay
def loss(x: Tensor[Float, (N,)]) -> Float:
    return (bent(x * 2.0, 3) * x).sum()


def torch_gradient(x: torch.Tensor) -> torch.Tensor:
    x = x.clone().requires_grad_()
    (found,) = torch.autograd.grad((Bent.apply(x * 2.0, 3) * x).sum(), x)
    return found


def test_the_rule_takes_the_place_of_the_derivative() -> None:
    x = torch.randn(5)
    torch.testing.assert_close(relay.grad(loss)(x), torch_gradient(x))
    torch.testing.assert_close(relay.grad(loss).interpret(x), torch_gradient(x))
    value, gradient = relay.value_and_grad(loss)(x)
    torch.testing.assert_close(value, (torch.tanh(x * 2.0) * 3 * x).sum())
    torch.testing.assert_close(gradient, torch_gradient(x))


def test_the_value_is_that_of_the_function() -> None:
    x = torch.randn(5)
    torch.testing.assert_close(bent(x, 2), torch.tanh(x) * 2)
    torch.testing.assert_close(bent.interpret(x, 2), torch.tanh(x) * 2)


def test_a_pullback_calls_the_rule() -> None:
    x, g = torch.randn(5), torch.randn(5)
    _, pullback = relay.vjp(bent)(x, 2)
    torch.testing.assert_close(pullback(g), g * x * x * 10.0)


def test_it_joins_the_graph_of_torch() -> None:
    x = torch.randn(5, requires_grad=True)
    loss(x).backward()
    torch.testing.assert_close(x.grad, torch_gradient(x.detach()))


@relay
def of_the_slope(x: Tensor[Float, (N,)]) -> Float:
    return relay.grad(loss)(x).sum()


def test_the_rules_are_differentiated_in_their_turn() -> None:
    def plain(x: torch.Tensor) -> torch.Tensor:  # what the gradient of `loss` computes
        return ((x * 2.0) ** 2 * 10.0 * x * 2.0 + torch.tanh(x * 2.0) * 3).sum()

    x = torch.randn(5)
    torch.testing.assert_close(relay.grad(of_the_slope)(x), torch.func.grad(plain)(x))


@relay
def square_fwd(x: Float) -> tuple[Float, Float]:
    return square(x), x


@relay
def square_bwd(x: Float, g: Float) -> Float:
    return 2.0 * x * g


@relay.custom_vjp(square_fwd, square_bwd)
@relay
def square(x: Float) -> Float:
    return x * x


@relay
def third(x: Float) -> Float:
    return relay.grad(lambda y: relay.grad(lambda z: relay.grad(lambda w: square(w) * w)(z))(y))(x)


def test_a_forward_rule_that_calls_the_function_differentiates_to_any_order() -> None:
    torch.testing.assert_close(third(torch.tensor(1.5)), torch.tensor(6.0))


@dataclass(frozen=True)
class Leaf:
    value: Float
    label: Int


@dataclass(frozen=True)
class Fork:
    left: Tree
    right: Tree


Tree = Leaf | Fork


@relay
def doubled(tree: Tree) -> Tree:
    match tree:
        case Leaf(value, label):
            return Leaf(value * 2.0, label)
        case Fork(left, right):
            return Fork(doubled(left), doubled(right))


@relay
def scaled_fwd(tree: Tree, w: Float) -> tuple[Tree, Float]:
    return scaled(tree, w), w


@relay
def scaled_bwd(w: Float, g: Tree) -> tuple[Tree, Float]:
    return doubled(g), w * 7.0


@relay.custom_vjp(scaled_fwd, scaled_bwd)
@relay
def scaled(tree: Tree, w: Float) -> Tree:
    match tree:
        case Leaf(value, label):
            return Leaf(value * w, label)
        case Fork(left, right):
            return Fork(scaled(left, w), scaled(right, w))


@relay
def total(tree: Tree) -> Float:
    match tree:
        case Leaf(value, label):
            return value * label
        case Fork(left, right):
            return total(left) + total(right)


@relay
def weighed(tree: Tree, w: Float) -> Float:
    return total(scaled(tree, w))


def test_cotangents_of_data_are_of_the_users_type() -> None:
    values = [torch.tensor(v) for v in (1.0, 2.0, 3.0)]
    tree = Fork(Leaf(values[0], 3), Fork(Leaf(values[1], 4), Leaf(values[2], 5)))
    for run in (relay.grad(weighed), relay.grad(weighed).interpret):
        gradient, w = run(tree, torch.tensor(0.5))
        assert gradient.left.value == 6.0
        assert gradient.right.left.value == 8.0
        assert gradient.right.right.value == 10.0
        assert w == 3.5


@relay
def pair_fwd(x: Float, y: Float) -> tuple[tuple[Float, Float], tuple[Float, Float]]:
    return (x * y, x + y), (x, y)


@relay
def pair_bwd(saved: tuple[Float, Float], g: tuple[Float, Float]) -> tuple[Float, Float]:
    return g[0] * saved[1] + g[1], g[0] * saved[0] + g[1]


@relay.custom_vjp(pair_fwd, pair_bwd)
@relay
def pair(x: Float, y: Float) -> tuple[Float, Float]:
    return x * y, x + y


@relay
def first_of_pair(x: Float, y: Float) -> Float:
    return pair(x, y)[0]


@relay
def both_of_pair(x: Float, y: Float) -> Float:
    a, b = pair(x, y)
    return a * b * b


def test_a_part_of_the_result_without_cotangent_is_zero() -> None:
    x, y = torch.tensor(2.0), torch.tensor(5.0)
    assert relay.grad(first_of_pair)(x, y) == (5.0, 2.0)
    expected = torch.func.grad(lambda x, y: x * y * (x + y) ** 2, argnums=(0, 1))(x, y)
    torch.testing.assert_close(relay.grad(both_of_pair)(x, y), expected)
    torch.testing.assert_close(relay.grad(both_of_pair, wrt="y")(x, y), expected[1])


@relay
def in_a_loop(x: Float, n: Int) -> Float:
    total = x
    for i in range(n):
        total = square(total) * 0.5 + x * i
    return total


@relay
def tree_of_squares(tree: Tree, w: Float) -> Float:
    match tree:
        case Leaf(value, _):
            return square(value * w)
        case Fork(left, right):
            return square(tree_of_squares(left, w)) + tree_of_squares(right, w)


def test_rules_are_called_in_loops_and_recursion() -> None:
    def plain(x: torch.Tensor) -> torch.Tensor:
        total = x
        for i in range(4):
            total = total * total * 0.5 + x * i
        return total

    x = torch.tensor(0.7)
    torch.testing.assert_close(relay.grad(in_a_loop)(x, 4), torch.func.grad(plain)(x))
    values = [torch.tensor(v) for v in (1.0, 2.0, 3.0)]
    tree = Fork(Leaf(values[0], 0), Fork(Leaf(values[1], 0), Leaf(values[2], 0)))
    w = torch.tensor(0.5)
    expected = torch.func.grad(
        lambda w: (values[0] * w) ** 4 + (values[1] * w) ** 4 + (values[2] * w) ** 2
    )(w)
    torch.testing.assert_close(relay.grad(tree_of_squares, wrt="w")(tree, w), expected)


@relay
def of_local_functions(x: Tensor[Float, (N,)], scale: Int) -> Float:
    def value(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return x * scale

    def fwd(x: Tensor[Float, (N,)]):
        return x * scale, x

    def bwd(saved: Tensor[Float, (N,)], g: Tensor[Float, (N,)]):
        return g * saved * scale

    return relay.custom_vjp(fwd, bwd)(value)(x).sum()


def test_local_functions_may_capture_what_is_not_differentiated() -> None:
    x = torch.randn(4)
    torch.testing.assert_close(of_local_functions(x, 3), (x * 3).sum())
    torch.testing.assert_close(relay.grad(of_local_functions)(x, 3), x * 3)


@relay
def captures_a_weight(x: Float, w: Float) -> Float:
    def fwd(x: Float):
        return x * w, x

    def bwd(x: Float, g: Float):
        return g * w

    return relay.custom_vjp(fwd, bwd)(lambda x: x * w)(x)


def test_a_captured_value_that_is_differentiated_is_a_mistake() -> None:
    x, w = torch.tensor(2.0), torch.tensor(3.0)
    assert relay.grad(captures_a_weight, wrt="x")(x, w) == 3.0
    with pytest.raises(CheckError, match="RL341"):
        relay.grad(captures_a_weight, wrt="w")(x, w)


@relay
def power_fwd(x: Float, *, n: int) -> tuple[Float, Float]:
    return x**n, x


@relay
def power_bwd(x: Float, g: Float, *, n: int) -> Float:
    return g * n * x ** (n - 1)


@relay.custom_vjp(power_fwd, power_bwd)
@relay
def power(x: Float, *, n: int) -> Float:
    return x**n


@relay
def of_powers(x: Float) -> Float:
    return power(x, n=3) + power(x, n=2)


def test_static_arguments_go_to_the_rules() -> None:
    x = torch.tensor(2.0)
    assert power(x, n=3) == 8.0
    assert relay.grad(of_powers)(x) == 16.0


@relay
def clip_fwd(x: Tensor[Float, (N, 3)]) -> tuple[Tensor[Float, (N, 3)], tuple[()]]:
    return x, ()


@relay
def clip_bwd(saved: tuple[()], g: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
    return relay.clamp(g, -0.01, 0.01)


@relay.custom_vjp(clip_fwd, clip_bwd)
@relay
def clip(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
    return x


@relay_model
def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(clip(relay.linear(x, out_features=3)), out_features=1)


@relay
def error(x: Tensor[Float, (N, 4)]) -> Float:
    return (net(x) ** 2).sum()


@relay
def step(model: Model[net], x: Tensor[Float, (N, 4)]) -> Float:
    value, grads = relay.value_and_grad(model, error, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return value


def test_gradients_of_models_go_through_the_rule() -> None:
    model = relay.create_model(net, seed=0)
    x = torch.randn(6, 4)
    gradient = relay.grad(model, error, (x,))
    first, second = (p.detach() for n, p in model.named_parameters() if "weight" in n)
    bias, last = (p.detach() for n, p in model.named_parameters() if "bias" in n)
    hidden = x @ first.T + bias
    g = 2 * (hidden @ second.T + last) @ second
    torch.testing.assert_close(gradient["linear_1.weight"], g.clamp(-0.01, 0.01).T @ x)
    before = model.state_dict()["linear_1.weight"].clone()
    step(model, x)
    moved = (before - model.state_dict()["linear_1.weight"]) / 0.1
    torch.testing.assert_close(moved, gradient["linear_1.weight"], atol=1e-5, rtol=1e-4)


def test_the_derivative_survives_text_json_and_python() -> None:
    module = relay.grad(loss).module
    again = relay.parse(to_text(module))
    x = torch.randn(5)
    torch.testing.assert_close(again["grad.loss"](x), torch_gradient(x))
    assert alpha_equal(from_json(to_json(module)), module)
    assert "relay.custom_vjp(bent_fwd, bent_bwd)(" in loss.show("python")


def test_a_decorated_function_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(bent)) is bent
