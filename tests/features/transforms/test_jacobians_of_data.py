"""Jacobians and Hessians over records, tuples with integers, lists, options and trees: the form of
the value, with that of the arguments in place of each tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pytest
import torch

from benchmarks.operator_counts import Count
from pyrelay import CheckError, Dim, Int, Tensor, float64, options, relay
from tests.binary_trees import Leaf, Node, Tree

# `torch.func.jvp` imports what torch itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

N = Dim("N")
VECTOR = Tensor[float64, (N,)]
MODES = ("jacfwd", "jacrev")
LOWERINGS = ("torch", "c")


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def parts(value: Any) -> Any:
    """Return a value as nested lists of what it holds, data without their names."""
    if isinstance(value, torch.Tensor) or value is None:
        return value
    if hasattr(value, "__dataclass_fields__"):
        return [parts(getattr(value, name)) for name in value.__dataclass_fields__]
    return [parts(value[i]) for i in range(len(value))]


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(parts(found), parts(expected), rtol=1e-9, atol=1e-12)


def agree(function: Any, args: tuple[Any, ...], expected: Any) -> None:
    close(function.interpret(*args), expected)
    for lowering in LOWERINGS:
        with options(lowering=lowering):
            close(function(*args), expected)


def tree_of(values: Any) -> Any:
    if len(values) == 1:
        return Leaf(values[0])
    half = len(values) // 2
    return Node(tree_of(values[:half]), tree_of(values[half:]))


@relay
def product(tree: Tree[float64], w: float64) -> float64:
    match tree:
        case Leaf(value):
            return relay.sin(value * w)
        case Node(left, right):
            return product(left, w) * product(right, w) + w


def plain_product(tree: Any, w: torch.Tensor) -> torch.Tensor:
    if isinstance(tree, Leaf):
        return torch.sin(tree.value * w)
    return plain_product(tree.left, w) * plain_product(tree.right, w) + w


VALUES, W = random(5), random(seed=1)


def plain_hessian(w: torch.Tensor) -> torch.Tensor:
    return torch.func.hessian(lambda v: plain_product(tree_of(v), w))(VALUES)


def test_the_hessian_over_a_tree_is_a_tree_of_trees() -> None:
    expected = tree_of([tree_of(row) for row in plain_hessian(W)])
    agree(relay.hessian(product, wrt="tree"), (tree_of(VALUES), W), expected)


@pytest.mark.parametrize("mode", MODES)
def test_the_jacobian_of_a_number_is_the_gradient(mode: str) -> None:
    by_values = torch.func.grad(lambda v: plain_product(tree_of(v), W))(VALUES)
    by_w = torch.func.grad(lambda w: plain_product(tree_of(VALUES), w))(W)
    agree(getattr(relay, mode)(product), (tree_of(VALUES), W), (tree_of(by_values), by_w))


@relay
def scaled(xs: list[VECTOR], k: float64) -> list[VECTOR]:
    found = []
    total = 0.0 * k
    for x in xs:
        total = total + x.sum() * k
        found.append(relay.sin(x) * total)
    return found


def plain_scaled(xs: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    totals = torch.cumsum(xs.sum(1) * k, 0)
    return torch.sin(xs) * totals[:, None]


@pytest.mark.parametrize("mode", MODES)
def test_jacobians_of_lists_of_tensors(mode: str) -> None:
    xs = random(3, 4)
    by_xs, by_k = torch.func.jacfwd(plain_scaled, argnums=(0, 1))(xs, W)
    expected = [([by_xs[i, :, j] for j in range(3)], by_k[i]) for i in range(3)]
    jacobian = getattr(relay, mode)(scaled)
    agree(jacobian, (list(xs), W), expected)
    agree(jacobian, ([], W), [])


@dataclass(frozen=True)
class Layer:
    weight: Tensor[float64, (2, 3)]
    bias: Tensor[float64, (2,)]
    uses: Int


@relay
def applied(layer: Layer, x: Tensor[float64, (3,)]) -> Layer:
    out = relay.tanh(layer.weight @ x + layer.bias)
    return Layer(layer.weight * out[0], out, layer.uses + 1)


def plain_applied(
    weight: torch.Tensor, bias: torch.Tensor, x: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    out = torch.tanh(weight @ x + bias)
    return weight * out[0], out


@pytest.mark.parametrize("mode", MODES)
def test_a_record_whose_type_cannot_show_the_shapes_becomes_a_tuple(mode: str) -> None:
    layer, x, zero = Layer(random(2, 3), random(2), 3), random(3), torch.tensor(0)
    rows = torch.func.jacfwd(plain_applied, argnums=(0, 1))(layer.weight, layer.bias, x)
    expected = (*((*row, zero) for row in rows), zero)
    agree(getattr(relay, mode)(applied, wrt="layer"), (layer, x), expected)


@dataclass(frozen=True)
class Ball:
    height: float64
    speed: float64
    bounces: Int


@relay
def moved(ball: Ball, time: float64) -> Ball:
    return Ball(ball.height + time * ball.speed, ball.speed * time, ball.bounces + 1)


@pytest.mark.parametrize("mode", MODES)
def test_a_record_whose_type_shows_the_shapes_stays_a_record(mode: str) -> None:
    ball, zero, one = Ball(random(), random(seed=2), 1), torch.tensor(0), torch.ones_like(W)
    rate = getattr(relay, mode)(moved, wrt="time")(ball, W)
    assert type(rate) is Ball
    close(rate, Ball(ball.speed, ball.speed, zero))
    expected = (Ball(one, W, zero), Ball(0 * one, W, zero), zero)
    agree(getattr(relay, mode)(moved, wrt="ball"), (ball, W), expected)


@relay
def guarded(value: float64 | None, pair: tuple[float64, Int]) -> tuple[float64, Int]:
    a = 1.0 if value is None else value
    return a * pair[0] * pair[1], pair[1]


@pytest.mark.parametrize("mode", MODES)
def test_options_and_integers_in_tuples(mode: str) -> None:
    jacobian, pair, zero = getattr(relay, mode)(guarded), (W, 3), torch.tensor(0)
    a = random(seed=3)
    agree(jacobian, (a, pair), ((3 * W, (3 * a, zero)), zero))
    agree(jacobian, (None, pair), ((None, (torch.full_like(W, 3.0), zero)), zero))


@relay
def weighted(tree: Tree[float64]) -> float64:
    match tree:
        case Leaf(value):
            return value
        case Node(left, right):
            return weighted(left) + 2.0 * weighted(right)


@relay
def corner(tree: Tree[float64], w: float64) -> float64:
    def outer(rows: Tree[Tree[float64]]) -> float64:
        match rows:
            case Leaf(row):
                return weighted(row)
            case Node(left, right):
                return outer(left) * 3.0 + outer(right)

    return outer(relay.hessian(product, wrt="tree")(tree, w))


def test_a_program_matches_on_a_jacobian_and_is_differentiated() -> None:
    def reduced(tree: Any, left: float, right: float) -> Any:
        if isinstance(tree, Leaf):
            return tree.value
        below = (reduced(t, left, right) for t in (tree.left, tree.right))
        first, second = below
        return left * first + right * second

    def plain(w: torch.Tensor) -> torch.Tensor:
        rows = [reduced(tree_of(row), 1.0, 2.0) for row in plain_hessian(w)]
        return reduced(tree_of(rows), 3.0, 1.0)

    expected = torch.func.grad(plain)(W)
    agree(relay.grad(corner, wrt="w"), (tree_of(VALUES), W), expected)


def test_a_hessian_over_data_is_mapped() -> None:
    ws = random(3, seed=4)
    each = torch.stack([plain_hessian(w) for w in ws])
    expected = tree_of([tree_of([*row.unbind(1)]) for row in each.unbind(1)])
    mapped = relay.vmap(relay.hessian(product, wrt="tree"), in_axes=(None, 0))
    close(mapped(tree_of(VALUES), ws), expected)


@relay
def loud(xs: list[float64]) -> float64:
    print("once")  # noqa: T201  the effect is what is counted
    total = 0.0
    for x in xs:
        total = total + x**3
    return total


@pytest.mark.parametrize("mode", [*MODES, "hessian"])
def test_effects_happen_once(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    getattr(relay, mode)(loud)([W, W])
    assert capsys.readouterr().out == "once\n"


@pytest.mark.host("what torch runs is counted")
@pytest.mark.parametrize("mode", MODES)
def test_operators_do_not_grow_with_the_elements_of_tensors(mode: str) -> None:
    derivative = getattr(relay, mode)(scaled, wrt="xs")
    found: list[int] = []
    for size in (4, 64):
        xs = [random(size), random(size)]
        derivative(xs, W)
        with Count() as count:
            derivative(xs, W)
        found.append(count.operators)
    small, large = found
    assert large <= small + 4  # torch copies what it cannot view, which depends on sizes


@dataclass(frozen=True)
class Nothing:
    pass


@dataclass(frozen=True)
class More:
    value: float64
    rest: Chain


Chain = Nothing | More


@relay
def summed(chain: Chain) -> float64:
    match chain:
        case Nothing():
            return 0.0
        case More(value, rest):
            return value * value * summed(rest)


def test_data_whose_type_cannot_show_the_shapes_are_refused() -> None:
    assert type(relay.jacfwd(summed)(More(W, Nothing()))) is More
    with pytest.raises(CheckError, match="make what it holds a type parameter"):
        relay.hessian(summed)(More(W, Nothing()))


T = TypeVar("T")


@dataclass(frozen=True)
class Swing(Generic[T]):
    place: T
    speed: T
    steps: Int


@relay
def swung(swing: Swing[VECTOR], dt: float64) -> float64:
    place, speed = swing.place, swing.speed
    for _ in range(swing.steps):
        speed = speed - dt * relay.sin(place)
        place = place + dt * speed
    return (place * speed).sum()


def test_sizes_that_data_alone_show_are_known_where_they_are_needed() -> None:
    swing = Swing(random(4), random(4, seed=2), 5)

    def plain(dt: torch.Tensor) -> torch.Tensor:
        place, speed = swing.place, swing.speed
        for _ in range(5):
            speed = speed - dt * torch.sin(place)
            place = place + dt * speed
        return (place * speed).sum()

    agree(relay.hessian(swung, wrt="dt"), (swing, W), torch.func.hessian(plain)(W))
