"""Derivatives that users write in forward mode: `jvp` calls the rule, `grad` transposes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Tensor, float64, relay, relay_model
from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.ir.equality import alpha_equal
from pyrelay.text.json import from_json, to_json
from pyrelay.text.printer import to_text

# `torch.func.jvp` imports what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

N = Dim("N")
VECTOR = Tensor[float64, (N,)]


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def close(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-12)


@relay
def bent_jvp(primals: tuple[VECTOR, Int], tangents: tuple[VECTOR]) -> tuple[VECTOR, VECTOR]:
    x, k = primals
    return bent(x, k), tangents[0] * x * x * 10.0


@relay.custom_jvp(bent_jvp)
@relay
def bent(x: VECTOR, k: Int) -> VECTOR:
    return relay.tanh(x) * k


class Bent(torch.autograd.Function):
    """The same rule in torch, in reverse mode."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, k: int) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.tanh(x) * k

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grads[0] * x * x * 10.0, None


@relay
def loss(x: VECTOR) -> float64:
    return (bent(x * 2.0, 3) * x).sum()


def torch_gradient(x: torch.Tensor) -> torch.Tensor:
    x = x.clone().requires_grad_()
    (found,) = torch.autograd.grad((Bent.apply(x * 2.0, 3) * x).sum(), x)
    return found


X, V = random(5), random(5, seed=1)


def test_forward_mode_calls_the_rule() -> None:
    for run in (relay.jvp(bent), relay.jvp(bent).interpret):
        value, tangent = run((X, 2), (V,))
        close(value, torch.tanh(X) * 2)
        close(tangent, V * X * X * 10.0)
    close(relay.jvp(loss)((X,), (V,))[1], (torch_gradient(X) * V).sum())


def test_reverse_mode_transposes_the_rule() -> None:
    close(relay.grad(loss)(X), torch_gradient(X))
    close(relay.grad(loss).interpret(X), torch_gradient(X))
    _, pullback = relay.vjp(bent)(X, 2)
    close(pullback(V), V * X * X * 10.0)


def test_the_value_is_that_of_the_function() -> None:
    close(bent(X, 2), torch.tanh(X) * 2)
    close(bent.interpret(X, 2), torch.tanh(X) * 2)


def test_it_joins_the_graph_of_torch() -> None:
    x = X.clone().requires_grad_()
    loss(x).backward()
    close(x.grad, torch_gradient(X))


@relay
def square_jvp(primals: tuple[float64], tangents: tuple[float64]) -> tuple[float64, float64]:
    return square(primals[0]), 2.0 * primals[0] * tangents[0]


@relay.custom_jvp(square_jvp)
@relay
def square(x: float64) -> float64:
    return x * x


@relay
def cubed(x: float64) -> float64:
    return square(x) * x


@pytest.mark.parametrize(
    ("first", "second", "third"), [(a, b, c) for a in "fr" for b in "fr" for c in "fr"]
)
def test_a_rule_that_calls_the_function_differentiates_to_any_order(
    first: str, second: str, third: str
) -> None:
    function: Any = cubed
    for mode in (first, second, third):
        function = relay.grad(function) if mode == "r" else _slope(function)
    close(function(1.5), torch.tensor(6.0, dtype=torch.float64))


def _slope(function: Any) -> Any:
    @relay
    def slope(x: float64) -> float64:
        return relay.jvp(function)((x,), (1.0,))[1]

    return slope


@dataclass(frozen=True)
class Leaf:
    value: float64
    label: Int


@dataclass(frozen=True)
class Fork:
    left: Tree
    right: Tree


Tree = Leaf | Fork


@relay
def added(tree: Tree, d: Tree, w: float64) -> Tree:
    match tree, d:
        case Leaf(value, label), Leaf(moved, _):
            return Leaf(w * value + 7.0 * moved, label)
        case Fork(left, right), Fork(d_left, d_right):
            return Fork(added(left, d_left, w), added(right, d_right, w))
        case _:
            return tree


@relay
def scaled_jvp(primals: tuple[Tree, float64], tangents: tuple[Tree, float64]) -> tuple[Tree, Tree]:
    tree, w = primals
    return scaled(tree, w), added(tree, tangents[0], tangents[1])


@relay.custom_jvp(scaled_jvp)
@relay
def scaled(tree: Tree, w: float64) -> Tree:
    match tree:
        case Leaf(value, label):
            return Leaf(value * w, label)
        case Fork(left, right):
            return Fork(scaled(left, w), scaled(right, w))


@relay
def total(tree: Tree) -> float64:
    match tree:
        case Leaf(value, label):
            return value * label
        case Fork(left, right):
            return total(left) + total(right)


@relay
def weighed(tree: Tree, w: float64) -> float64:
    return total(scaled(tree, w))


TREE = Fork(Leaf(1.0, 3), Fork(Leaf(2.0, 4), Leaf(3.0, 5)))
ALONG = Fork(Leaf(0.5, 0), Fork(Leaf(-1.0, 0), Leaf(2.0, 0)))


def test_rules_over_data_are_pushed_and_transposed() -> None:
    for run in (relay.grad(weighed), relay.grad(weighed).interpret):
        gradient, w = run(TREE, 0.5)
        assert gradient.left.value == 21.0
        assert gradient.right.left.value == 28.0
        assert gradient.right.right.value == 35.0
        assert w == 3.0 + 8.0 + 15.0
    _, tangent = relay.jvp(weighed)((TREE, 0.5), (ALONG, 2.0))
    assert tangent == 21.0 * 0.5 - 28.0 + 35.0 * 2.0 + 2.0 * 26.0


@relay
def tree_of_squares(tree: Tree, w: float64) -> float64:
    match tree:
        case Leaf(value, _):
            return square(value * w)
        case Fork(left, right):
            return square(tree_of_squares(left, w)) + tree_of_squares(right, w)


@relay
def in_a_loop(x: float64, n: Int) -> float64:
    total = x
    for i in range(n):
        total = square(total) * 0.5 + x * i
    return total


def test_rules_are_followed_in_loops_and_recursion() -> None:
    def looped(x: torch.Tensor) -> torch.Tensor:
        total = x
        for i in range(4):
            total = total * total * 0.5 + x * i
        return total

    x = torch.tensor(0.7, dtype=torch.float64)
    close(relay.grad(in_a_loop)(x, 4), torch.func.grad(looped)(x))
    close(relay.jvp(in_a_loop)((x, 4), (x,)), torch.func.jvp(looped, (x,), (x,)))

    def forked(w: torch.Tensor) -> torch.Tensor:
        return (1.0 * w) ** 4 + (2.0 * w) ** 4 + (3.0 * w) ** 2

    gradient = relay.grad(tree_of_squares, wrt="w")(TREE, x)
    close(gradient, torch.func.grad(forked)(x))
    tangent = relay.jvp(tree_of_squares, wrt="w")((TREE, x), (x,))
    close(tangent, torch.func.jvp(forked, (x,), (x,)))


@relay
def solved_jvp(primals: tuple[float64, Int], tangents: tuple[float64]) -> tuple[float64, float64]:
    root = solved(primals[0], primals[1])
    moved = tangents[0] * 0.0
    for _ in range(60):  # a loop in the rule, linear in the direction
        moved = 0.5 * moved - tangents[0] / (4.0 * root) + tangents[0] / (2.0 * root)
    return root, moved


@relay.custom_jvp(solved_jvp)
@relay
def solved(a: float64, rounds: Int) -> float64:
    x = a
    for _ in range(rounds):
        x = 0.5 * (x + a / x)
    return x


def test_a_rule_may_loop() -> None:
    a = torch.tensor(2.0, dtype=torch.float64)
    expected = 0.5 / torch.sqrt(a)
    close(relay.jvp(solved)((a, 8), (torch.ones_like(a),))[1], expected)
    close(relay.grad(solved)(a, 8), expected)


@relay
def local(x: VECTOR, scale: Int) -> float64:
    def value(x: VECTOR) -> VECTOR:
        return x * scale

    def rule(primals, tangents):
        return value(primals[0]), tangents[0] * scale * primals[0]

    return relay.custom_jvp(rule)(value)(x).sum()


@relay
def decorated(x: VECTOR, scale: Int) -> float64:
    def fwd(x: VECTOR):
        return x * scale, x

    def bwd(saved: VECTOR, g: VECTOR):
        return g * saved * scale

    def rule(primals, tangents):
        return primals[0] * scale, tangents[0] * scale * primals[0]

    @relay.custom_vjp(fwd, bwd)
    def one(x: VECTOR) -> VECTOR:
        return x * scale

    @relay.checkpoint
    @relay.custom_jvp(rule)
    def other(x: VECTOR) -> VECTOR:
        return x * scale

    return one(x).sum() + other(x).sum()


def test_local_functions_may_capture_what_is_not_differentiated() -> None:
    close(relay.grad(local)(X, 3), X * 3)
    close(relay.jvp(local)((X, 3), (V,)), ((X * 3).sum(), (X * 3 * V).sum()))


def test_rules_decorate_local_functions() -> None:
    close(decorated(X, 3), (X * 6).sum())
    close(relay.grad(decorated)(X, 3), X * 6)
    close(relay.jvp(decorated)((X, 3), (V,))[1], (X * 6 * V).sum())


@relay
def captures_a_weight(x: float64, w: float64) -> float64:
    def rule(primals, tangents):
        return primals[0] * w, tangents[0] * w

    return relay.custom_jvp(rule)(lambda x: x * w)(x)


def test_a_captured_value_that_is_differentiated_is_a_mistake() -> None:
    assert relay.grad(captures_a_weight, wrt="x")(2.0, 3.0) == 3.0
    with pytest.raises(CheckError, match="RL341"):
        relay.grad(captures_a_weight, wrt="w")(2.0, 3.0)
    with pytest.raises(CheckError, match="RL341"):
        relay.jvp(captures_a_weight, wrt="w")((2.0, 3.0), (1.0,))


@relay
def power_jvp(
    primals: tuple[float64], tangents: tuple[float64], *, n: int
) -> tuple[float64, float64]:
    x = primals[0]
    return x**n, tangents[0] * n * x ** (n - 1)


@relay.custom_jvp(power_jvp)
@relay
def power(x: float64, *, n: int) -> float64:
    return x**n


@relay
def of_powers(x: float64) -> float64:
    return power(x, n=3) + power(x, n=2)


def test_static_arguments_go_to_the_rule() -> None:
    assert power(2.0, n=3) == 8.0
    assert relay.grad(of_powers)(2.0) == 16.0


@relay
def halved_jvp(
    primals: tuple[Tensor[Float, (N, 3)]], tangents: tuple[Tensor[Float, (N, 3)]]
) -> tuple[Tensor[Float, (N, 3)], Tensor[Float, (N, 3)]]:
    return primals[0], tangents[0] * 0.5


@relay.custom_jvp(halved_jvp)
@relay
def halved(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
    return x


@relay_model
def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(halved(relay.linear(x, out_features=3)), out_features=1)


@relay
def error(x: Tensor[Float, (N, 4)]) -> Float:
    return (net(x) ** 2).sum()


@relay
def step(model: Model[net], x: Tensor[Float, (N, 4)]) -> Float:
    value, grads = relay.value_and_grad(model, error, (x,))
    relay.update_model_params(model, grads, lr=1.0)
    return value


def test_gradients_of_models_go_through_the_rule() -> None:
    model = relay.create_model(net, seed=0)
    x = torch.randn(6, 4)
    gradient = relay.grad(model, error, (x,))
    first, second = (p.detach() for n, p in model.named_parameters() if "weight" in n)
    bias, last = (p.detach() for n, p in model.named_parameters() if "bias" in n)
    hidden = x @ first.T + bias
    g = 2 * (hidden @ second.T + last) @ second
    torch.testing.assert_close(gradient["linear_1.weight"], (g * 0.5).T @ x)
    before = model.state_dict()["linear_1.weight"].clone()
    step(model, x)
    moved = before - model.state_dict()["linear_1.weight"]
    torch.testing.assert_close(moved, gradient["linear_1.weight"], atol=1e-5, rtol=1e-4)


def test_the_derivative_survives_text_json_and_python() -> None:
    module = relay.grad(loss).module
    again = relay.parse(to_text(module))
    close(again["grad.loss"](X), torch_gradient(X))
    assert alpha_equal(from_json(to_json(module)), module)
    assert "relay.custom_jvp(bent_jvp)(" in loss.show("python")
