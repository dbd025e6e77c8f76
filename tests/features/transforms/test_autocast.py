"""Mixed precision: `relay.autocast`, against float32 and `torch.autocast`, and loss scaling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.nn import functional

from pyrelay import Dim, Float, Fn, Int, Model, Tensor, float64, relay, relay_model
from pyrelay.config import options
from pyrelay.models.loss_scale import LossScale, fixed_loss_scale
from pyrelay.prelude import List

N = Dim("N")
B = Dim("B")
Rows = Tensor[Float, (N, 8)]
Square = Tensor[Float, (8, 8)]
ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


@relay
def layers(x: Rows, w: Square) -> Float:
    h = relay.relu(x @ w)
    return relay.softmax_cross_entropy(h @ w, relay.argmax(x, dim=1))


@relay
def loop(x: Rows, w: Square) -> Float:
    for _ in range(3):
        x = relay.layer_norm(x @ w, 8)
    return (x * x * x).mean()


@relay
def closure(x: Rows, w: Square) -> Float:
    def step(f: Fn[[Rows], Rows], x: Rows) -> Rows:
        return relay.tanh(f(x))

    return step(lambda z: z @ w, step(lambda z: z @ relay.transpose(w, 0, 1), x)).sum()


@dataclass(frozen=True)
class Leaf:
    value: Tensor[Float, (8,)]


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def encoded(tree: Tree, w: Square) -> Tensor[Float, (8,)]:
    match tree:
        case Leaf(value):
            return relay.tanh(w @ value)
        case Node(left, right):
            return relay.tanh(w @ (encoded(left, w) + encoded(right, w)))


@relay
def over_a_tree(x: Rows, w: Square) -> Float:
    return encoded(Node(Node(Leaf(x[0]), Leaf(x[1])), Leaf(x[2])), w).sum()


@relay
def cube_fwd(x: Rows, w: Square) -> tuple[Rows, tuple[Rows, Square]]:
    return cube(x, w), (x, w)


@relay
def cube_bwd(saved: tuple[Rows, Square], g: Rows) -> tuple[Rows, Square]:
    x, w = saved
    return g @ relay.transpose(w, 0, 1), relay.transpose(x, 0, 1) @ g


@relay.custom_vjp(cube_fwd, cube_bwd)
@relay
def cube(x: Rows, w: Square) -> Rows:
    return x @ w


@relay
def with_a_rule(x: Rows, w: Square) -> Float:
    return relay.tanh(cube(x, w)).sum()


# The same programs in torch, with casts where `autocast` has them.


class Reference:
    """The programs, with products in a narrow dtype; the derivatives of casts are casts."""

    def __init__(self, policy: str) -> None:
        self.dtype = getattr(torch, policy)

    def product(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a.to(self.dtype) @ b.to(self.dtype)).float()

    def layers(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.product(x, w))
        return functional.cross_entropy(self.product(h, w), x.argmax(1))

    def loop(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = functional.layer_norm(self.product(x, w), (8,))
        return (x * x * x).mean()

    def closure(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.product(torch.tanh(self.product(x, w.T)), w)).sum()

    def over_a_tree(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        a, b, c = (torch.tanh(self.product(w, row)) for row in x[:3])
        inner = torch.tanh(self.product(w, a + b))
        return torch.tanh(self.product(w, inner + c)).sum()

    def with_a_rule(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.product(x, w)).sum()


PROGRAMS = (layers, loop, closure, over_a_tree, with_a_rule)
LOWERINGS = {"evaluator": 0.1, "torch": 0.1, "c": 4.0}
"""How far the gradients may be from those of torch with the same casts, in units of rounding. Calls
of torch are the same; C adds up in another order, so each product may be rounded the other way."""
AMPLIFIED = 16
"""How far they may be from float32, and in C where norms of rows amplify a rounding before them."""


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(5, 8, generator=generator), torch.randn(8, 8, generator=generator) / 3)


def distance(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float(((found - wanted).norm() / wanted.norm()).detach())


@pytest.mark.parametrize("policy", ROUNDING)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_torch_with_the_same_casts(program: Any, policy: str) -> None:
    x, w = (t.requires_grad_() for t in inputs())
    unit = ROUNDING[policy]
    value = getattr(Reference(policy), program.__name__)(x, w)
    wanted = torch.autograd.grad(value, (x, w))
    half = relay.autocast(program, policy=policy)
    x, w = inputs()
    exact = relay.grad(program, wrt=("x", "w"))(x, w)
    for lowering, most in LOWERINGS.items():
        if program is loop and lowering == "c":
            most = AMPLIFIED
        with options(lowering=lowering):
            assert distance(half(x, w), value) < most * unit
            found = relay.grad(half, wrt=("x", "w"))(x, w)
        for own, same, full in zip(found, wanted, exact, strict=True):
            assert own.dtype == torch.float32
            assert distance(own, same) < most * unit
            assert 0 < distance(own, full) < AMPLIFIED * unit


def test_products_are_those_of_torchs_autocast() -> None:
    x, w = inputs()

    @relay
    def product(x: Rows, w: Square) -> Rows:
        return x @ w

    with torch.autocast("cpu", torch.bfloat16):
        wanted = (x @ w).float()
    with options(lowering="torch"):  # kernels do not round what they go on to compute with
        torch.testing.assert_close(relay.autocast(product)(x, w), wanted, rtol=0, atol=0)


def test_float64_stays_float64() -> None:
    @relay.autocast
    @relay
    def product(x: Tensor[float64, (N, 8)], w: Tensor[float64, (8, 8)]) -> Tensor[float64, (N, 8)]:
        return x @ w

    x, w = (t.double() for t in inputs())
    torch.testing.assert_close(product(x, w), x @ w, rtol=1e-12, atol=1e-12)


def test_it_goes_with_vmap_and_checkpoint_and_further_derivatives() -> None:
    @relay
    def each(x: Tensor[Float, (8,)], w: Square) -> Float:
        return relay.tanh(x @ w).sum()

    @relay
    def gradients(x: Rows, w: Square) -> Rows:
        half = relay.grad(relay.autocast(each, policy="float16"), wrt="x")
        return relay.vmap(half, in_axes=(0, None))(x, w)

    @relay
    def outside(x: Rows, w: Square) -> Float:
        def mapped(x: Rows) -> Float:
            return relay.vmap(lambda z: relay.checkpoint(each)(z, w))(x).sum()

        return relay.autocast(mapped, policy="float16")(x)

    x, w = inputs()
    leaf = x.clone().requires_grad_()
    torch.tanh(leaf @ w).sum().backward()
    assert leaf.grad is not None
    assert 0 < distance(gradients(x, w), leaf.grad) < 4 * ROUNDING["float16"]
    assert 0 < distance(relay.grad(outside, wrt="x")(x, w), leaf.grad) < 4 * ROUNDING["float16"]
    v = torch.ones(8)
    exact = relay.hvp(each, wrt="x")((x[0], w), (v,))
    half = relay.hvp(relay.autocast(each, policy="float16"), wrt="x")((x[0], w), (v,))
    assert 0 < distance(half, exact) < 8 * ROUNDING["float16"]


def test_less_is_saved_for_the_gradient() -> None:
    def saved(function: Any) -> str:
        return relay.grad(function, wrt="w").show("simplified")

    @relay
    def deep(x: Rows, w: Square) -> Float:
        return relay.relu(relay.relu(x @ w) @ w).sum()

    assert "bfloat16] = relu(" in saved(relay.autocast(deep))
    assert "float32] = relu(" not in saved(relay.autocast(deep))


# Models.


@relay_model
def network(x: Tensor[Float, (N, 1, 12, 12)]) -> Tensor[Float, (N, 3)]:
    h = relay.max_pool2d(relay.relu(relay.conv2d(x, out_channels=4, kernel_size=3)), 2)
    h = relay.batch_norm(h)
    return relay.linear(relay.flatten(h, start_dim=1), out_features=3)


@relay
def image_loss(x: Tensor[Float, (N, 1, 12, 12)], y: Tensor[Int, (N,)]) -> Float:
    return relay.softmax_cross_entropy(network(x), y)


def images() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(16, 1, 12, 12, generator=generator)
    return x, (x.mean((1, 2, 3)) > 0).long()


def in_torch(
    model: Model, x: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return the loss and its gradients by torch, in the precision around the call."""
    weights = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    conv, norm, last = ("conv2d_1", "batch_norm_1", "linear_1")
    h = functional.conv2d(x, weights[f"{conv}.weight"], weights[f"{conv}.bias"])
    h = functional.max_pool2d(torch.relu(h), 2).float()
    scale, shift = weights[f"{norm}.weight"], weights[f"{norm}.bias"]
    h = functional.batch_norm(h, None, None, scale, shift, training=True)
    out = functional.linear(h.flatten(1), weights[f"{last}.weight"], weights[f"{last}.bias"])
    loss = functional.cross_entropy(out.float(), y)
    return loss, dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))


@pytest.mark.parametrize("policy", ROUNDING)
def test_a_loss_of_a_model_has_the_gradients_of_torchs_autocast(policy: str) -> None:
    """Far from those of float32: where rounding makes elements under a window equal, the maximum is
    another one. So only torch in the same precision says what they are."""
    model: Model = relay.create_model(network, seed=0)
    half = relay.autocast(image_loss, policy=policy)
    with torch.autocast("cpu", getattr(torch, policy)):
        value, grads = in_torch(model, *images())
    for lowering, most in LOWERINGS.items():
        with options(lowering=lowering):
            found, narrow = relay.value_and_grad(model, half, images())
        assert distance(found, value) < most * ROUNDING[policy]
        for name in grads:
            assert narrow[name].dtype == torch.float32
            assert distance(narrow[name], grads[name]) < most * ROUNDING[policy], name
    exact, full = relay.value_and_grad(model, image_loss, images())
    _, narrow = relay.value_and_grad(model, half, images())
    torch.testing.assert_close((exact, dict(full)), in_torch(model, *images()))
    assert any(distance(narrow[name], full[name]) > 4 * ROUNDING[policy] for name in grads)


def test_a_model_definition_has_an_autocast_and_float32_parameters() -> None:
    half = relay.create_model(relay.autocast(network), seed=0)
    full = relay.create_model(network, seed=0)
    x, _ = images()
    assert {p.dtype for p in half.parameters()} == {torch.float32}
    assert 0 < distance(half.eval()(x), full.eval()(x)) < 8 * ROUNDING["bfloat16"]
    y = half(x).sum()
    y.backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in half.parameters())


@relay
def train(
    model: Model[network], xs: Tensor[Float, (B, N, 1, 12, 12)], ys: Tensor[Int, (B, N)]
) -> Float:
    optimizer = relay.optim.adam(lr=0.01)
    total = 0.0
    for x, y in zip(xs, ys):
        value, grads = relay.value_and_grad(model, relay.autocast(image_loss), (x, y))
        relay.update_model_params(model, grads, optimizer=optimizer)
        total += value
    return total / len(xs)


def test_training_in_bfloat16_updates_float32_parameters() -> None:
    model: Model = relay.create_model(network, seed=0)
    x, y = images()
    xs, ys = x.reshape(2, 8, 1, 12, 12), y.reshape(2, 8)
    first, *_, last = [train(model, xs, ys) for _ in range(20)]
    assert last < 0.3 * first
    assert {p.dtype for p in model.parameters()} == {torch.float32}


# Loss scaling.


@relay_model
def linear(x: Rows) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def small_loss(x: Rows, y: Tensor[Float, (N, 1)]) -> Float:
    return 1e-9 * relay.mean((linear(x) - y) ** 2)


half_loss = relay.autocast(small_loss, policy="float16")


@relay
def scaled_loss(x: Rows, y: Tensor[Float, (N, 1)], scale: LossScale) -> Float:
    return scale.scaled(half_loss(x, y))


@relay
def scaled_steps(
    model: Model[linear], xs: List[Rows], ys: List[Tensor[Float, (N, 1)]], scale: LossScale
) -> LossScale:
    optimizer = relay.optim.sgd(lr=1e8)
    for x, y in zip(xs, ys):
        _, grads = relay.value_and_grad(model, scaled_loss, (x, y, scale))
        grads = grads * scale.inverse()
        finite = relay.isfinite(grads.norm())
        if finite:
            relay.update_model_params(model, grads, optimizer=optimizer)
        scale = scale.adjusted(finite)
    return scale


def batches(count: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(2)
    xs = [torch.randn(6, 8, generator=generator) for _ in range(count)]
    return xs, [x.sum(1, keepdim=True) for x in xs]


def test_a_scale_saves_gradients_that_float16_rounds_to_zero() -> None:
    model: Model = relay.create_model(linear, seed=0)
    (x,), (y,) = batches(1)
    exact = relay.grad(model, small_loss, (x, y))["linear_1.weight"]
    lost = relay.grad(model, half_loss, (x, y))["linear_1.weight"]
    scale = fixed_loss_scale(65536.0)

    found = relay.grad(model, scaled_loss, (x, y, scale)) * scale.inverse()
    assert distance(lost, exact) > 0.5
    assert distance(found["linear_1.weight"], exact) < 0.01
    assert scale.adjusted(True).scale == scale.adjusted(False).scale == 65536.0


@pytest.mark.parametrize("lowering", ["evaluator", "torch", "c"])
def test_a_step_with_gradients_that_are_not_finite_is_left_out(lowering: str) -> None:
    model: Model = relay.create_model(linear, seed=0)
    before = [p.clone() for p in model.parameters()]
    xs, ys = batches(4)
    with options(lowering=lowering):
        scale = scaled_steps(model, xs, ys, LossScale(2.0**60, backoff=0.5))
    assert scale.scale == 2.0**56
    assert all(map(torch.equal, model.parameters(), before))
    with options(lowering=lowering):
        scale = scaled_steps(model, xs, ys, LossScale(2.0**16, interval=3))
    assert (scale.scale, scale.good) == (2.0**17, 1)
    assert not any(map(torch.equal, model.parameters(), before))


def test_training_with_a_dynamic_scale_finds_one_and_converges() -> None:
    model: Model = relay.create_model(linear, seed=0)
    xs, ys = batches(40)
    scale = scaled_steps(model, xs, ys, LossScale(2.0**60, interval=50))
    scale = scaled_steps(model, xs, ys, scale)
    assert scale.scale < 2.0**60
    assert relay.grad(model, small_loss, (xs[0], ys[0])).norm() < 1e-11


def test_policies_and_rules_stack() -> None:
    @relay.autocast
    @relay.checkpoint
    @relay
    def both(x: Rows, w: Square) -> Float:
        return cube(relay.tanh(x @ w), w).sum()

    text = relay.value_and_grad(both, wrt="w").show("simplified")
    assert text.count(" tanh(") == 2
    assert "bfloat16] = matmul(" in text
    doubled = relay.autocast(relay.custom_vjp(cube_fwd, twice_bwd)(cube_again))
    x, w = inputs()

    @relay
    def total(x: Rows, w: Square) -> Float:
        return doubled(x, w).sum()

    found = relay.grad(total, wrt="x")(x, w)
    assert 0 < distance(found, 2 * torch.ones_like(x) @ w.T) < 4 * ROUNDING["bfloat16"]


@relay
def twice_bwd(saved: tuple[Rows, Square], g: Rows) -> tuple[Rows, Square]:
    x, w = saved
    return 2.0 * (g @ relay.transpose(w, 0, 1)), relay.transpose(x, 0, 1) @ g


@relay
def cube_again(x: Rows, w: Square) -> Rows:
    return x @ w
