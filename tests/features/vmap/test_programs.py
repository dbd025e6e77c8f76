"""Functions mapped over a batch have the values of a loop of calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pytest
import torch

from pyrelay import Dim, Int, Tensor, float64, relay
from tests.binary_trees import Leaf, Node, Tree

N, M, K = Dim("N"), Dim("M"), Dim("K")
T = TypeVar("T")
D = float64


Vec = Tensor[D, (3,)]


@dataclass(frozen=True)
class Pair(Generic[T]):
    first: T
    second: T


def batch(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def looped(f: Callable[..., Any], xs: Any, *rest: Any) -> Any:
    return torch.stack([torch.as_tensor(f(x, *rest)) for x in xs])


@relay
def affine(x: Tensor[D, (N,)], w: Tensor[D, (N,)]) -> Tensor[D, (N,)]:
    return relay.tanh(x * w + 1.0) / (1.0 + x * x)


@relay
def polynomial(x: Tensor[D, ()]) -> Tensor[D, ()]:
    total = x * 0.0
    for i in range(4):
        total = total * x + i
    return total


@relay
def closures(x: Vec, w: Vec) -> Tensor[D, ()]:
    def scaled(v: Vec) -> Vec:
        return v * x

    def twice(f: Callable[[Vec], Vec], v: Vec) -> Vec:
        return f(f(v))

    return twice(scaled, w).sum() + scaled(w).sum()


@relay
def power(x: Tensor[D, ()], n: Int) -> Tensor[D, ()]:
    return x if n <= 1 else x * power(x, n - 1)


@relay
def fifth(x: Tensor[D, ()]) -> Tensor[D, ()]:
    return power(x, 5)


@relay
def branch(x: Tensor[D, ()]) -> Tensor[D, ()]:
    if x > 0.0:
        return relay.log(x) * 2.0
    return x * x


@relay
def steps(x: Tensor[D, ()]) -> Tensor[D, ()]:
    count, x = 0.0 * x, x * x
    while x < 10.0:
        x = x * 2.0 + 1.0
        count = count + 1.0
    return count + x


@relay
def collatz(n: Int) -> Int:
    count = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n
            n += 1
        count += 1
    return count


@relay
def factorial(n: Int) -> Int:
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@relay
def picked(x: Tensor[D, (N,)], i: Int) -> Tensor[D, ()]:
    return x[i] * 2.0 + x[0]


@relay
def written(x: Tensor[D, (N,)], i: Int) -> Tensor[D, (N,)]:
    y = x * 1.0
    y[i] = 5.0
    y[0] += 1.0
    return y


@relay
def by_number(n: Int, x: Tensor[D, ()]) -> Tensor[D, ()]:
    match n:
        case 0:
            return x
        case 1:
            return x * 2.0
        case _:
            return x - 100.0


@relay
def cells(x: Tensor[D, ()]) -> Tensor[D, ()]:
    r = relay.ref(x)
    for _ in range(3):
        r.value = r.value * x
    return r.value


@relay
def total(tree: Tree[Vec], w: Vec) -> Tensor[D, ()]:
    match tree:
        case Leaf(value):
            return relay.tanh(value * w).sum()
        case Node(left, right):
            return total(left, w) * 2.0 + total(right, w)


ELEMENTWISE = [polynomial, fifth, branch, steps, cells]


@pytest.mark.parametrize("f", ELEMENTWISE, ids=lambda f: f.__name__)
def test_functions_of_numbers_are_those_of_each(f: Any) -> None:
    xs = batch(7)
    assert torch.allclose(relay.vmap(f)(xs), looped(f, xs), atol=1e-6)


@pytest.mark.parametrize("f", [f for f in ELEMENTWISE if f is not steps], ids=lambda f: f.__name__)
def test_gradients_of_each_element(f: Any) -> None:
    xs = batch(7) + 0.1
    gradient = relay.grad(f)
    assert torch.allclose(relay.vmap(gradient)(xs), looped(gradient, xs), atol=1e-6)


@pytest.mark.parametrize("f", ELEMENTWISE, ids=lambda f: f.__name__)
def test_gradients_of_sums_over_batches(f: Any) -> None:
    @relay
    def whole(xs: Tensor[D, (N,)]) -> Tensor[D, ()]:
        return relay.vmap(f)(xs).sum()

    xs = batch(7) + 0.1
    assert torch.allclose(relay.grad(whole)(xs), looped(relay.grad(f), xs), atol=1e-6)


@pytest.mark.parametrize("f", [collatz, factorial], ids=lambda f: f.__name__)
def test_loops_and_recursion_of_different_lengths(f: Any) -> None:
    xs = torch.tensor([1, 2, 7, 4, 9, 1])
    assert torch.equal(relay.vmap(f)(xs), looped(f, xs))


def test_the_batch_is_at_any_axis() -> None:
    xs, w = batch(5, 3), batch(3, seed=1)
    wanted = looped(affine, xs, w)
    assert torch.allclose(relay.vmap(affine, in_axes=(0, None))(xs, w), wanted)
    assert torch.allclose(relay.vmap(affine, in_axes=(-1, None))(xs.T, w), wanted)
    found = relay.vmap(affine, in_axes=(0, None), out_axes=1)(xs, w)
    assert torch.allclose(found, wanted.T)
    both = relay.vmap(affine)(xs, xs)
    assert torch.allclose(both, torch.stack([affine(x, x) for x in xs]))


def test_batches_of_batches() -> None:
    xs, ws = batch(5, 3), batch(4, 3, seed=1)

    @relay
    def table(xs: Tensor[D, (N, K)], ws: Tensor[D, (M, K)]) -> Tensor[D, (N, M, K)]:
        return relay.vmap(lambda x: relay.vmap(lambda w: affine(x, w))(ws))(xs)

    wanted = torch.stack([torch.stack([affine(x, w) for w in ws]) for x in xs])
    assert torch.allclose(table(xs, ws), wanted)


def test_closures_capture_what_is_batched() -> None:
    xs, w = batch(5, 3), batch(3, seed=1)
    found = relay.vmap(closures, in_axes=(0, None))(xs, w)
    assert torch.allclose(found, looped(closures, xs, w))


def test_positions_of_each_element() -> None:
    xs, at = batch(5, 3), torch.tensor([0, 2, 1, -1, 0])
    pairs = list(zip(xs, at, strict=True))
    found = relay.vmap(picked)(xs, at)
    assert torch.allclose(found, torch.stack([picked(x, i) for x, i in pairs]))
    found = relay.vmap(written)(xs, at)
    assert torch.allclose(found, torch.stack([written(x, i) for x, i in pairs]))


def test_matches_by_numbers() -> None:
    xs, ns = batch(5), torch.tensor([0, 1, 2, 1, 5])
    wanted = torch.stack([by_number(n, x) for n, x in zip(ns, xs, strict=True)])
    assert torch.allclose(relay.vmap(by_number)(ns, xs), wanted)


def test_data_of_one_structure() -> None:
    trees = batch(3, 5, 3)
    w = batch(3, seed=1)

    def tree(a: Any, b: Any, c: Any) -> Any:
        return Node(Leaf(a), Node(Leaf(b), Leaf(c)))

    @relay
    def totals(tree: Tree[Tensor[D, (M, 3)]], ws: Tensor[D, (M, 3)]) -> Tensor[D, (M,)]:
        return relay.vmap(total)(tree, ws)

    ws = w.expand(5, 3).contiguous()
    wanted = torch.stack([total(tree(*trees[:, i]), w) for i in range(5)])
    assert torch.allclose(totals(tree(*trees), ws), wanted)
    assert torch.allclose(relay.vmap(total)(tree(*trees), ws), wanted)
    gradient = relay.vmap(relay.grad(total, wrt="w"))(tree(*trees), ws)
    wanted = torch.stack([relay.grad(total, wrt="w")(tree(*trees[:, i]), w) for i in range(5)])
    assert torch.allclose(gradient, wanted)


def test_a_cell_that_all_elements_share_is_read_in_branches() -> None:
    @relay
    def scaled(xs: Tensor[D, (N,)]) -> Tensor[D, (N,)]:
        scale = relay.ref(relay.sum(xs))

        def one(x: Tensor[D, ()]) -> Tensor[D, ()]:
            if x > 0.0:
                return relay.log(x) * scale.value
            return scale.value - x

        found = relay.vmap(one)(xs)
        scale.value = 0.0
        return found + scale.value

    xs = batch(7)
    wanted = torch.where(xs > 0, xs.abs().log() * xs.sum(), xs.sum() - xs)
    assert torch.allclose(scaled(xs), wanted)


@relay
def thrice_fwd(x: Vec, n: Int) -> tuple[Vec, Vec]:
    return x * x, x


@relay
def thrice_bwd(x: Vec, g: Vec) -> Vec:
    return 3.0 * x * g


@relay.custom_vjp(thrice_fwd, thrice_bwd)
@relay
def thrice(x: Vec, n: Int) -> Vec:
    return x * x if n > 0 else thrice(x, n + 1)


@relay
def sum_of_thrice(x: Vec) -> Tensor[D, ()]:
    return thrice(x, 0).sum()


def test_functions_with_rules() -> None:
    xs = batch(4, 3)
    assert torch.allclose(relay.vmap(thrice, in_axes=(0, None))(xs, 0), xs * xs)
    assert torch.allclose(relay.vmap(relay.grad(sum_of_thrice))(xs), 3 * xs)
