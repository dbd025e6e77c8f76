"""Records of parameters and gradients, and instances of data types, as pytrees."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import optree
import pytest
import torch
from torch.utils import _pytree as torch_trees

from pyrelay import Dim, Float, Tensor, relay, relay_model
from pyrelay.prelude import List, values

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.tanh(relay.linear(x, out_features=4)), out_features=2)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return relay.sum(net(x))


@dataclass(frozen=True)
class Leaf:
    name: str
    weight: Float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay
def total(t: Tree) -> Float:
    match t:
        case Leaf(_, w):
            return w * w
        case Node(a, b):
            return total(a) + total(b)


LIBRARIES: list[Any] = [
    (optree.tree_map, optree.tree_leaves),
    (torch_trees.tree_map, torch_trees.tree_leaves),
]


@pytest.mark.parametrize(("tree_map", "leaves"), LIBRARIES, ids=["optree", "torch"])
def test_tree_map_goes_through_records(tree_map: Any, leaves: Any) -> None:
    model = relay.create_model(net, seed=0)
    grads = relay.grad(model, loss, (torch.ones(5, 3),))
    for record in (model.params, grads):
        doubled = tree_map(lambda t: t * 2, record)
        assert type(doubled) is type(record)
        assert list(doubled) == list(record)
        torch.testing.assert_close(dict(doubled.items()), dict((record * 2).items()))
        assert all(a is b for a, b in zip(leaves(record), record.values(), strict=True))
    added = tree_map(torch.add, model.params, model.params)
    torch.testing.assert_close(dict(added.items()), dict((model.params * 2).items()))
    assert tree_map(lambda t: t.dim(), grads) == {n: t.dim() for n, t in grads.items()}


@pytest.mark.parametrize(("tree_map", "leaves"), LIBRARIES, ids=["optree", "torch"])
def test_tree_map_goes_through_data_and_its_gradient(tree_map: Any, leaves: Any) -> None:
    tree: Any = Node(Leaf("a", torch.tensor(2.0)), Leaf("b", torch.tensor(3.0)))
    slope = relay.grad(total)(tree)
    assert leaves(slope) == [4.0, 6.0]
    moved = tree_map(lambda t, g: t - 0.5 * g, tree, slope)
    assert moved == Node(Leaf("a", torch.tensor(0.0)), Leaf("b", torch.tensor(0.0)))
    assert total(tree_map(lambda t: t + 1, tree)) == 25.0


@relay
def pair(x: Float) -> List[Float]:
    return [x, x + 1.0]


@pytest.mark.parametrize(("tree_map", "leaves"), LIBRARIES, ids=["optree", "torch"])
def test_tree_map_goes_through_lists_that_programs_return(tree_map: Any, leaves: Any) -> None:
    found = pair(1.0)
    assert leaves(found) == [1.0, 2.0]
    assert tree_map(lambda t: t + 1, found) == values.List.of([2.0, 3.0])
    assert tree_map(lambda t: t, values.List.of([])) == values.List.of([])


def test_paths_name_parameters_and_fields() -> None:
    model = relay.create_model(net, seed=0)
    tree: Any = Node(Leaf("a", torch.tensor(2.0)), Leaf("b", torch.tensor(3.0)))
    total(tree)
    found, _ = torch_trees.tree_flatten_with_path(tree)
    assert [torch_trees.keystr(path) for path, _ in found] == [".left.weight", ".right.weight"]
    assert optree.tree_paths(tree) == [("left", "weight"), ("right", "weight")]
    assert optree.tree_paths(model.params) == [(name,) for name in model.params]


def test_a_class_that_the_caller_has_registered_stays_the_callers() -> None:
    @dataclass(frozen=True)
    class Mine:
        weight: Float

    torch_trees.register_pytree_node(Mine, lambda _: ([], None), lambda _, __: Mine(1.0))

    @relay
    def square(m: Mine) -> Float:
        return m.weight * m.weight

    mine: Any = Mine(torch.tensor(3.0))
    assert square(mine) == 9.0
    assert torch_trees.tree_leaves(mine) == []
    assert optree.tree_leaves(mine) == [3.0]


def test_jax_is_told_where_the_program_has_imported_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[type, Any] = {}
    jax: Any = ModuleType("jax")

    def register(cls: type, flatten: Any, unflatten: Any) -> None:
        told[cls] = flatten, unflatten

    jax.tree_util = SimpleNamespace(register_pytree_node=register)
    monkeypatch.setitem(sys.modules, "jax", jax)

    @dataclass(frozen=True)
    class Point:
        x: Float

    @relay
    def norm(p: Point) -> Float:
        return p.x * p.x

    norm(Point(torch.tensor(2.0)))
    flatten, unflatten = told[Point]
    children, rest = flatten(Point(torch.tensor(2.0)))
    assert list(children) == [2.0]
    assert unflatten(rest, (torch.tensor(5.0),)) == Point(torch.tensor(5.0))


def test_importing_pyrelay_loads_neither_torch_nor_optree() -> None:
    script = "import pyrelay, sys; print('torch' in sys.modules, 'optree' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]
