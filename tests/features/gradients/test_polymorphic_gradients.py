"""Polymorphic functions called from a script are differentiated at the types that are passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
import torch

import pyrelay
from pyrelay import CheckError, Dim, Float, Fn, Ref, RunError, Tensor, relay, relay_model
from pyrelay.prelude import List
from tests.binary_trees import Leaf, Node, Tree

T = TypeVar("T")
U = TypeVar("U")
N = Dim("N")


@dataclass(frozen=True)
class Line:
    slope: Tensor[Float, (2,)]
    degree: int


@relay
def first(a: T, b: T) -> T:
    return a


@relay
def leftmost(t: Tree[T]) -> T:
    match t:
        case Leaf(v):
            return v
        case Node(l, _):
            return leftmost(l)


@relay
def folded(f: Fn[[U, T], U], start: U, items: List[T]) -> U:
    total = start
    for item in items:
        total = f(total, item)
    return total


@relay
def chosen(x: Tensor[Float, (N,)], a: T, flag: bool) -> tuple[Float, T]:
    return relay.sum(x * x), a


@relay
def applied(f: Fn[[T], Float], x: T) -> Float:
    return f(x)


@relay
def held(cell: Ref[T], other: T) -> T:
    kept = cell.value
    cell.value = other
    return kept


@relay
def square(x: Float) -> Float:
    return x * x


@relay
def norm(x: Tensor[Float, (N,)]) -> Float:
    return relay.sum(x * x)


@relay
def scaled_sum(total: Float, x: Tensor[Float, (N,)]) -> Float:
    return total * 2.0 + relay.sum(x * x)


@relay
def slope_norm(line: Line) -> Float:
    return relay.sum(line.slope * line.slope)


@relay_model
def net(x: Tensor[Float, (N, 2)]) -> Tensor[Float, (N, 3)]:
    return relay.linear(x, out_features=3)


@relay
def scored(x: Tensor[Float, (N, 2)], tag: T) -> tuple[Float, T]:
    return relay.sum(net(x) * net(x)), tag


def test_a_gradient_is_of_the_types_that_are_passed() -> None:
    assert relay.grad(first)(2.0, 3.0) == (1.0, 0.0)
    x = torch.tensor(2.0)
    assert torch.equal(relay.grad(first, wrt="a")(x, x), torch.tensor(1.0))
    back = relay.vjp(first)(torch.ones(3), torch.zeros(3))[1]
    assert torch.equal(back(torch.arange(3.0))[0], torch.arange(3.0))
    back = relay.vjp(first)(torch.ones(2, 2), torch.zeros(2, 2))[1]
    assert torch.equal(back(torch.ones(2, 2))[1], torch.zeros(2, 2))


def test_a_type_parameter_stands_for_data_tuples_and_lists() -> None:
    tree = Node(Leaf(torch.tensor(2.0)), Leaf(torch.tensor(3.0)))
    found = relay.grad(leftmost)(tree)
    assert (float(found.left.value), float(found.right.value)) == (1.0, 0.0)
    line = Line(torch.ones(2), 3)
    value, found = relay.value_and_grad(applied)(slope_norm, line)
    assert float(value) == 2.0
    assert torch.equal(found.slope, 2 * torch.ones(2))
    assert found.degree == 0
    _, back = relay.vjp(leftmost)(Node(Leaf((torch.ones(2), 1)), Leaf((torch.ones(2), 2))))
    cotangent = back((torch.ones(2), 0))
    assert torch.equal(cotangent.left.value[0], torch.ones(2))
    _, back = relay.vjp(first)([1.0, 2.0], [3.0])
    ours, theirs = back(List.of([torch.tensor(5.0), torch.tensor(6.0)]))
    assert ours.to_list() == [5.0, 6.0]
    assert theirs.to_list() == [0.0]


@pytest.mark.parametrize("items", [[torch.ones(2), 2 * torch.ones(2)], [torch.ones(3)], []])
def test_functions_and_what_they_are_used_at_are_found_together(items: list[Any]) -> None:
    start = torch.tensor(1.0)
    value, grads = relay.value_and_grad(folded, wrt=("start", "items"))(scaled_sum, start, items)
    expected = start
    leaves = [i.clone().requires_grad_() for i in items]
    for leaf in leaves:
        expected = expected * 2.0 + (leaf * leaf).sum()
    assert torch.allclose(value, expected)
    assert float(grads[0]) == 2.0 ** len(items)
    wanted = torch.autograd.grad(expected, leaves) if leaves else ()
    assert len(grads[1]) == len(wanted)
    assert all(map(torch.allclose, grads[1].to_list(), wanted))


def test_one_instance_serves_every_size_and_another_type_gets_its_own() -> None:
    derived = relay.grad(applied)
    derived(norm, torch.ones(3))
    with pyrelay.no_compile():
        assert torch.equal(derived(norm, torch.ones(5)), 2 * torch.ones(5))
    assert derived(square, 3.0) == 6.0
    with pytest.raises(RunError):
        relay.vjp(first)(torch.ones(3), torch.ones(4))


def test_calls_join_torchs_graph() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    found = first(x, torch.zeros(2))
    (slope,) = torch.autograd.grad(found.sum(), x)
    assert torch.equal(slope, torch.ones(2))
    found = leftmost(Node(Leaf(x), Leaf(x)))
    (slope,) = torch.autograd.grad((found * found).sum(), x)
    assert torch.equal(slope, 2 * x)
    value, tag = chosen(x, "name", True)
    assert tag == "name"
    (slope,) = torch.autograd.grad(value, x)
    assert torch.equal(slope, 2 * x)
    with torch.no_grad():
        assert not first(x, x).requires_grad
    assert first("a", "b") == "a"
    assert first(None, None) is None


def test_functions_of_models_are_differentiated_beside_values_of_any_type() -> None:
    model = relay.create_model(net, seed=0)
    x = torch.ones(4, 2)
    (value, tag), grads = relay.value_and_grad(model, scored, (x, "a"), has_aux=True)
    assert tag == "a"
    weights = [p.detach().clone().requires_grad_() for p in model.parameters()]
    expected = (torch.nn.functional.linear(x, *weights) ** 2).sum()
    assert torch.allclose(value, expected)
    for mine, theirs in zip(grads.values(), torch.autograd.grad(expected, weights), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-5)


def test_cells_of_any_type_are_differentiated() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    cell = relay.ref(torch.tensor(1.0))
    held(cell, x)
    assert float(held(cell, x).detach()) == 3.0


def test_second_derivatives_are_of_the_types_that_are_passed() -> None:
    assert relay.grad(relay.grad(applied))(square, 3.0) == 2.0


def test_what_holds_no_floats_has_no_gradient() -> None:
    with pytest.raises(CheckError) as caught:
        relay.grad(first)(1, 2)
    assert caught.value.codes == ("RL216",)


def test_checking_a_transform_checks_the_function() -> None:
    assert relay.grad(first).check() is not None
