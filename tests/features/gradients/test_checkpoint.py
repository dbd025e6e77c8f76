"""`relay.checkpoint`: gradients are the same, less is saved, and what is not saved runs again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from pyrelay import Dim, Float, Int, Tensor, relay, relay_model
from pyrelay.diagnostics.diagnostic import CheckError

N = Dim("N")
Rows = Tensor[Float, (N, 8)]
Square = Tensor[Float, (8, 8)]


@relay
def block(x: Rows, w: Square) -> Rows:
    h = relay.tanh(x @ w)
    gate = relay.sigmoid(h @ w)
    return relay.exp(gate * h * 0.1)


def torch_block(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = torch.tanh(x @ w)
    return torch.exp(torch.sigmoid(h @ w) * h * 0.1)


saving_nothing = relay.checkpoint(block)
saving_products = relay.checkpoint(block, policy="products")
saving_h = relay.checkpoint(block, policy=("h",))


@relay
def plain(x: Rows, w: Square) -> Float:
    return block(block(x, w), w).sum()


@relay
def nothing(x: Rows, w: Square) -> Float:
    return saving_nothing(saving_nothing(x, w), w).sum()


@relay
def products(x: Rows, w: Square) -> Float:
    return saving_products(saving_products(x, w), w).sum()


@relay
def by_name(x: Rows, w: Square) -> Float:
    return saving_h(saving_h(x, w), w).sum()


@relay
def of_closures(x: Rows, w: Square) -> Float:
    y = relay.checkpoint(lambda z: block(z, w))(x)
    return relay.checkpoint(lambda z: block(z, w), policy="products")(y).sum()


@relay
def nested(x: Rows, w: Square) -> Float:
    return relay.checkpoint(lambda z: saving_nothing(saving_products(z, w), w))(x).sum()


EVERY = (nothing, products, by_name, of_closures, nested)


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(5, 8, generator=generator), torch.randn(8, 8, generator=generator)


def torch_gradients(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = checkpoint(torch_block, x, w, use_reentrant=False)
    z = checkpoint(torch_block, y, w, use_reentrant=False)
    return torch.autograd.grad(z.sum(), (x, w))


@pytest.mark.parametrize("function", EVERY, ids=lambda f: f.__name__)
def test_gradients_are_those_of_torch(function: Any) -> None:
    x, w = inputs()
    torch.testing.assert_close(relay.grad(function)(x, w), torch_gradients(x, w))
    torch.testing.assert_close(relay.grad(function).interpret(x, w), torch_gradients(x, w))
    torch.testing.assert_close(function(x, w), plain(x, w))


def test_it_joins_the_graph_of_torch() -> None:
    x, w = inputs()
    w.requires_grad_()
    nothing(x, w).backward()
    torch.testing.assert_close(w.grad, torch_gradients(*inputs())[1])


def count(function: Any, operator: str) -> int:
    return relay.value_and_grad(function).show("simplified").count(f" {operator}(")


def test_what_is_not_saved_is_computed_twice() -> None:
    assert [count(f, "tanh") for f in (plain, nothing, products, by_name)] == [2, 4, 4, 2]
    assert [count(f, "sigmoid") for f in (plain, nothing, products, by_name)] == [2, 4, 4, 4]
    assert [count(f, "exp") for f in (plain, nothing, products, by_name)] == [2, 4, 4, 4]


def saved(function: Any) -> str:
    _, _, lines = relay.grad(function).explain().partition("gradients save\n")
    return lines


def test_explain_shows_what_is_saved() -> None:
    assert saved(plain) == "  plain: 192*N B\n"
    assert "  nothing: 32*N B\n" in saved(nothing)
    assert "  block: 96*N B, when it is computed again\n" in saved(nothing)
    assert saved(products) == "  products: 160*N B\n"
    assert saved(by_name) == "  by_name: 96*N B\n"


@relay
def loop(x: Rows, w: Square, steps: Int) -> Float:
    for _ in range(steps):
        x = saving_nothing(x, w)
    return x.sum()


@relay
def plain_loop(x: Rows, w: Square, steps: Int) -> Float:
    for _ in range(steps):
        x = block(x, w)
    return x.sum()


def test_a_loop_saves_the_arguments_of_each_round() -> None:
    x, w = inputs()
    expected = relay.grad(plain_loop)(x, w, 4)
    torch.testing.assert_close(relay.grad(loop)(x, w, 4), expected)
    torch.testing.assert_close(relay.grad(loop).interpret(x, w, 4), expected)


@dataclass(frozen=True)
class Leaf:
    value: Float


@dataclass(frozen=True)
class Fork:
    left: Tree
    right: Tree


Tree = Leaf | Fork


@relay
def fold(tree: Tree, w: Float) -> Float:
    match tree:
        case Leaf(value):
            return relay.tanh(value * w)
        case Fork(left, right):
            return fold(left, w) * fold(right, w)


@relay
def whole_recursion(tree: Tree, w: Float) -> Float:
    return relay.checkpoint(fold)(tree, w) * w


def test_a_recursion_is_checkpointed_as_a_whole() -> None:
    values = [torch.tensor(v) for v in (1.0, 2.0, 3.0)]
    tree = Fork(Leaf(values[0]), Fork(Leaf(values[1]), Leaf(values[2])))
    w = torch.tensor(0.5)

    def run(w: torch.Tensor) -> torch.Tensor:
        a, b, c = (torch.tanh(v * w) for v in values)
        return a * b * c * w

    gradient, slope = relay.grad(whole_recursion)(tree, w)
    torch.testing.assert_close(slope, torch.func.grad(run)(w))
    assert relay.equal(gradient, relay.grad(saved_recursion)(tree, w)[0])


@relay
def saved_recursion(tree: Tree, w: Float) -> Float:
    return fold(tree, w) * w


@relay
def through_itself(tree: Tree, w: Float) -> Float:
    match tree:
        case Leaf(value):
            return relay.tanh(value * w)
        case Fork(left, right):
            return relay.checkpoint(through_itself)(left, w) * through_itself(right, w)


def test_a_recursion_through_the_checkpoint_is_refused() -> None:
    tree = Fork(Leaf(torch.tensor(1.0)), Leaf(torch.tensor(2.0)))
    assert through_itself(tree, torch.tensor(0.5)) == fold(tree, torch.tensor(0.5))
    with pytest.raises(CheckError, match="RL343"):
        relay.grad(through_itself)(tree, torch.tensor(0.5))


@relay
def noisy(x: Rows, w: Square, seed: Int) -> Rows:
    key = relay.random.key(seed)
    noise = relay.random.normal(key, x.shape)
    return relay.tanh(x @ w + noise) * noise


@relay
def with_noise(x: Rows, w: Square, seed: Int) -> Float:
    return relay.checkpoint(noisy)(x, w, seed).sum()


@relay
def with_noise_saved(x: Rows, w: Square, seed: Int) -> Float:
    return noisy(x, w, seed).sum()


def test_random_numbers_are_the_same_when_they_are_drawn_again() -> None:
    x, w = inputs()
    expected = relay.grad(with_noise_saved)(x, w, 7)
    torch.testing.assert_close(relay.grad(with_noise)(x, w, 7), expected)


@relay
def slope(x: Rows, w: Square) -> Float:
    return relay.grad(nothing, wrt="x")(x, w).sum()


@relay
def plain_slope(x: Rows, w: Square) -> Float:
    return relay.grad(plain, wrt="x")(x, w).sum()


def test_second_derivatives_are_the_same() -> None:
    x, w = inputs()
    torch.testing.assert_close(relay.grad(slope)(x, w), relay.grad(plain_slope)(x, w))


@relay.checkpoint
@relay_model
def layer(x: Rows) -> Rows:
    return relay.tanh(relay.linear(relay.tanh(relay.linear(x, out_features=8)), out_features=8))


@relay_model
def network(x: Rows) -> Tensor[Float, (N, 1)]:
    for _ in relay.layers(3):
        x = layer(x)
    return relay.linear(x, out_features=1)


@relay
def error(x: Rows) -> Float:
    return (network(x) ** 2).sum()


def test_models_are_checkpointed_with_their_parameters() -> None:
    model = relay.create_model(network, seed=0)
    x, _ = inputs()
    gradient = relay.grad(model, error, (x,))
    names = [n for n, _ in model.named_parameters()]

    def run(weights: list[torch.Tensor]) -> torch.Tensor:
        rest, y = iter(weights), x
        for _ in range(3):
            y = torch.tanh(y @ next(rest).T + next(rest))
            y = torch.tanh(y @ next(rest).T + next(rest))
        return ((y @ next(rest).T + next(rest)) ** 2).sum()

    expected = torch.func.grad(run)([p.detach() for p in model.parameters()])
    torch.testing.assert_close([gradient[n] for n in names], expected)


@relay
def printing(x: Float) -> Float:
    print("once")  # noqa: T201  the effect
    return x * x


@relay
def of_printing(x: Float) -> Float:
    return relay.checkpoint(printing)(x)


def test_a_function_with_effects_is_refused() -> None:
    with pytest.raises(CheckError, match="RL343"):
        relay.grad(of_printing)(torch.tensor(2.0))


@relay
def of_no_name(x: Rows, w: Square) -> Float:
    return relay.checkpoint(block, policy=("hidden",))(x, w).sum()


def test_a_policy_of_unknown_names_is_refused() -> None:
    with pytest.raises(CheckError, match="RL344"):
        relay.grad(of_no_name)(*inputs())


def test_the_text_and_the_python_of_a_checkpoint_compile_again() -> None:
    x, w = inputs()
    module = relay.parse(relay.grad(products).show("typed"))
    run: Callable[..., Any] = module["grad.products"]
    torch.testing.assert_close(run(x, w), torch_gradients(x, w))
    assert "relay.checkpoint(" in products.show("python")
