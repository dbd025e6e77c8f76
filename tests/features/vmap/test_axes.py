"""Where the batch is: axes of tuples, data and parameters that are the same for all elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import pytest
import torch

from pyrelay import Dim, Float, RunError, Tensor, relay
from tests.binary_trees import Leaf, Node, Tree

T = TypeVar("T")
N, M = Dim("N"), Dim("M")
XS, YS = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0])


@dataclass(frozen=True)
class Pair(Generic[T]):
    first: T
    second: T


@dataclass(frozen=True)
class Point:
    place: Float
    speed: Tensor[Float, (2,)]


@relay
def moved(p: Point, time: Float) -> Point:
    return Point(p.place + p.speed.sum() * time, p.speed * 0.5)


@relay
def nested(p: tuple[Float, tuple[Float, Float]], z: Float) -> tuple[Float, Float]:
    return p[0] * p[1][0] + z, p[1][1] * 2.0


@relay
def swapped(pair: Pair[Float], z: Float) -> Pair[Float]:
    return Pair(pair.second * z, pair.first)


@relay
def product(tree: Tree[Float]) -> Float:
    match tree:
        case Leaf(value):
            return value * value
        case Node(left, right):
            return product(left) * product(right)


@relay
def total(values: list[Float | None]) -> Float:
    found = 0.0
    for value in values:
        if value is not None:
            found += value
    return found


@relay
def applied(f: Callable[[Float], Float], x: Float, s: str) -> Float:
    return f(f(x)) if s == "twice" else f(x)


@relay
def squared(x: Float) -> Float:
    return x * x


def test_fields_of_tuples_have_axes_of_their_own() -> None:
    mapped = relay.vmap(nested, in_axes=((0, (None, 0)), None), out_axes=(0, 0))
    first, second = mapped((XS, (2.0, YS)), 3.0)
    torch.testing.assert_close(first, XS * 2 + 3)
    torch.testing.assert_close(second, YS * 2)


def test_a_result_that_all_elements_share_stays_one() -> None:
    @relay
    def both(x: Float, z: Float) -> tuple[Float, Float]:
        return x * z, z * 2.0

    each, one = relay.vmap(both, in_axes=(0, None), out_axes=(0, None))(XS, 3.0)
    torch.testing.assert_close(each, XS * 3)
    torch.testing.assert_close(one, torch.tensor(6.0))


def test_lambdas_return_tuples_and_data() -> None:
    @relay
    def beside(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]):
        nested = relay.vmap(lambda p: (p[0], (p[1] * p[0], 1.0)))((x, y))
        one = relay.vmap(lambda a, b: (a + b, 2.0), out_axes=(0, None))(x, y)
        data = relay.vmap(lambda a: (Pair(a, a * a), [a]))(x)
        pairs = relay.vmap(lambda a, b: (a, b), in_axes=(None, 0))
        return nested, one, data, relay.vmap(pairs, in_axes=(0, None))(x, y)

    nested, one, (pair, items), (rows, columns) = beside(XS, YS)
    torch.testing.assert_close(nested, (XS, (YS * XS, torch.ones(3))))
    torch.testing.assert_close(one, (XS + YS, torch.tensor(2.0)))
    torch.testing.assert_close((pair.first, pair.second, items[0]), (XS, XS * XS, XS))
    torch.testing.assert_close((rows, columns), torch.meshgrid(XS, YS, indexing="ij"))


def test_records_of_fixed_types_are_made_of_batches_of_their_fields() -> None:
    @relay
    def ahead(xs: Tensor[Float, (N,)], vs: Tensor[Float, (N, 2)]):
        def fields(x: Float, v: Tensor[Float, (2,)]) -> tuple[Float, Tensor[Float, (2,)]]:
            p = moved(moved(Point(x, v), 1.0), 2.0)
            return p.place, p.speed

        return relay.vmap(fields)(xs, vs), relay.vmap(relay.grad(lambda x, v: fields(x, v)[0]))(
            xs, vs
        )

    vs = torch.stack((XS, YS), 1)
    (places, speeds), (by_place, by_speed) = ahead(XS, vs)
    torch.testing.assert_close(places, XS + 2.0 * vs.sum(1))
    torch.testing.assert_close(speeds, 0.25 * vs)
    torch.testing.assert_close(by_place, torch.ones(3))
    torch.testing.assert_close(by_speed, torch.full((3, 2), 2.0))
    whole = relay.vmap(moved, in_axes=(0, None))(Point(XS, vs), 1.0)
    torch.testing.assert_close(whole.place, XS + vs.sum(1))


def test_derivatives_of_lambdas_find_their_parameters_in_the_call() -> None:
    @relay
    def cubes(x: Tensor[Float, (N,)]):
        return relay.vmap(relay.value_and_grad(lambda a: a * a * a))(x)

    torch.testing.assert_close(cubes(XS), (XS**3, 3 * XS**2))


def test_data_alone_show_the_size_of_the_batch() -> None:
    found = relay.vmap(swapped, in_axes=(0, None))(Pair(XS, YS), 2.0)
    torch.testing.assert_close((found.first, found.second), (YS * 2, XS))
    tree = Node(Node(Leaf(XS), Leaf(YS)), Leaf(XS + 1))
    torch.testing.assert_close(relay.vmap(product)(tree), (XS * YS * (XS + 1)) ** 2)
    slope = relay.vmap(relay.grad(product))(tree)
    torch.testing.assert_close(slope.right.value, 2 * (XS + 1) * (XS * YS) ** 2)
    torch.testing.assert_close(relay.vmap(total)([None, XS, YS]), XS + YS)


def test_data_of_batches_of_batches() -> None:
    rows = torch.arange(6.0).reshape(2, 3)
    found = relay.vmap(relay.vmap(product))(Node(Leaf(rows), Leaf(rows + 1)))
    torch.testing.assert_close(found, (rows * (rows + 1)) ** 2)


def test_data_without_a_tensor_are_no_batch() -> None:
    with pytest.raises(RunError, match="no tensor that shows its size"):
        relay.vmap(total)([None, None])
    with pytest.raises(RunError, match="is 3, not 2"):
        relay.vmap(total)([XS[:2], YS])


def test_functions_and_strings_are_the_same_for_all_elements() -> None:
    torch.testing.assert_close(relay.vmap(applied)(squared, XS, "twice"), XS**4)
    torch.testing.assert_close(relay.vmap(applied)(squared, XS, "once"), XS**2)


@relay
def written(x: Tensor[Float, (N, M)], i: int, j: int, row: Tensor[Float, (M,)]):
    x = x * 1.0
    x[i] = row
    x[:, j] = 7.0
    x[i, j] += 8.0
    x[1:, :2] -= row[:2]
    return x


def test_writes_go_to_places_of_each_element() -> None:
    x, rows = torch.arange(24.0).reshape(3, 2, 4), torch.ones(3, 4)
    i, j = torch.tensor([0, 1, 1]), torch.tensor([2, 0, 3])
    wanted = [written(*each) for each in zip(x, i.tolist(), j.tolist(), rows, strict=True)]
    torch.testing.assert_close(relay.vmap(written)(x, i, j, rows), torch.stack(wanted))
    one = relay.vmap(written, in_axes=(None, 0, None, None))(x[0], i, 2, rows[0])
    wanted = [written(x[0], each, 2, rows[0]) for each in i.tolist()]
    torch.testing.assert_close(one, torch.stack(wanted))


def test_each_element_draws_by_its_own_key() -> None:
    @relay
    def walk(key: Tensor[int, (2,)], x: Float) -> Float:
        first, second = relay.random_split(key)
        return x + relay.random.normal(first, ()) * relay.random.uniform(second, ())

    keys = relay.random_split(relay.random_key(0), 3)
    wanted = torch.stack([walk(k, x) for k, x in zip(keys, XS, strict=True)])
    torch.testing.assert_close(relay.vmap(walk)(keys, XS), wanted)
