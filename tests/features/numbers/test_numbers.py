"""Results are Python's own numbers where the annotation has `int`, `float` or `bool`, wherever in
the value that is, and tensors where it has `Int`, `Float` or `Bool`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
import torch

from pyrelay import Dim, Float, Fn, Int, Ref, Tensor, relay, relay_model
from pyrelay.prelude import List
from tests.binary_trees import Leaf, Node, Tree

N = Dim("N")
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Pair(Generic[T, U]):
    first: T
    trees: List[Tree[U]]
    count: int


@dataclass(frozen=True)
class Box(Generic[T]):
    tree: Tree[int]
    maybe: T | None
    both: tuple[T, float]


@relay
def same(t: Tree[int]) -> Tree[int]:
    return t


@relay
def doubled(t: Tree[float]) -> Tree[float]:
    match t:
        case Leaf(v):
            return Leaf(2.0 * v)
        case Node(l, r):
            return Node(doubled(l), doubled(r))


@relay
def doubled_as_tensors(t: Tree[Float]) -> Tree[Float]:
    match t:
        case Leaf(v):
            return Leaf(2.0 * v)
        case Node(l, r):
            return Node(doubled_as_tensors(l), doubled_as_tensors(r))


@relay
def signs(x: float) -> Tree[bool]:
    return Node(Leaf(x > 0.0), Leaf(x < 0.0))


@relay
def mixed(x: Float, n: Int) -> Pair[Float, int]:
    return Pair(x, [Leaf(n), Node(Leaf(n + 1), Leaf(n + 2))], n)


@relay
def boxed(n: int) -> Box[bool]:
    return Box(Leaf(n), n > 0, (n > 1, 0.5))


@relay
def boxed_tensor(n: int) -> Box[Int]:
    return Box(Leaf(n), None, (n, 0.5))


@relay
def several(n: int) -> tuple[int, Int, List[float], List[Float]]:
    return n, n, [1.5, 2.5], [1.5]


@relay
def counted(x: Tensor[Float, (N, 3)]) -> tuple[int, Int]:
    return x.shape[0], x.shape[0]


@relay
def unannotated(n: int):
    return Leaf(n), n


@relay
def celled(cell: Ref[int]) -> Ref[int]:
    cell.value = cell.value + 1
    return cell


@relay
def squarer(k: float) -> Fn[[Float], tuple[float, Float]]:
    return lambda x: (k * x, k * x)


@relay
def total(t: Tree[float], scale: Float) -> float:
    match t:
        case Leaf(v):
            return scale * v * v
        case Node(l, r):
            return total(l, scale) + total(r, scale)


@relay_model
def sizes(x: Tensor[Float, (N, 4)]) -> tuple[Tree[int], Tensor[Float, (N, 2)]]:
    return Node(Leaf(x.shape[0]), Leaf(2)), relay.linear(x, out_features=2)


def shape(value: Any) -> Any:
    """Return a value with its leaves as text that tells tensors from numbers."""
    if isinstance(value, torch.Tensor):
        return f"tensor {value.item()}"
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, tuple):
        return tuple(map(shape, value))
    if hasattr(value, "to_list"):
        return [shape(v) for v in value.to_list()]
    return (type(value).__name__, *(shape(v) for v in vars(value).values()))


TREE: Any = Node(Leaf(2.0), Leaf(torch.tensor(3.0)))


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        (same, (Node(Leaf(2), Leaf(torch.tensor(3))),), ("Node", ("Leaf", 2), ("Leaf", 3))),
        (doubled, (TREE,), ("Node", ("Leaf", 4.0), ("Leaf", 6.0))),
        (doubled_as_tensors, (TREE,), ("Node", ("Leaf", "tensor 4.0"), ("Leaf", "tensor 6.0"))),
        (signs, (2.0,), ("Node", ("Leaf", True), ("Leaf", False))),
        (
            mixed,
            (0.5, 7),
            ("Pair", "tensor 0.5", [("Leaf", 7), ("Node", ("Leaf", 8), ("Leaf", 9))], 7),
        ),
        (boxed, (1,), ("Box", ("Leaf", 1), True, (False, 0.5))),
        (boxed_tensor, (4,), ("Box", ("Leaf", 4), None, ("tensor 4", 0.5))),
        (several, (3,), (3, "tensor 3", [1.5, 2.5], ["tensor 1.5"])),
        (counted, (torch.zeros(5, 3),), (5, "tensor 5")),
        (unannotated, (3,), (("Leaf", "tensor 3"), "tensor 3")),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_numbers_are_as_annotated(function: Any, args: tuple[Any, ...], expected: Any) -> None:
    assert shape(function(*args)) == expected
    assert shape(function.interpret(*args)) == expected


def test_what_a_program_passes_through_stays_the_callers() -> None:
    tree = Node(Leaf(2), Leaf(3))
    assert same(tree) is tree


def test_cells_hold_numbers_as_annotated() -> None:
    cell = relay.ref(3)
    celled(cell)
    assert type(cell.value) is int
    assert cell.value == 4
    assert type(celled(cell).value) is int


def test_functions_give_numbers_as_annotated() -> None:
    assert shape(squarer(2.0)(torch.tensor(3.0))) == (6.0, "tensor 6.0")


def test_gradients_have_the_form_of_their_parameters() -> None:
    value, (tree, scale) = relay.value_and_grad(total)(TREE, 2.0)
    assert value == 26.0
    assert type(value) is float
    assert shape(tree) == ("Node", ("Leaf", 8.0), ("Leaf", 12.0))
    assert shape(scale) == "tensor 13.0"
    assert shape(relay.grad(total, wrt="t")(TREE, 2.0)) == shape(tree)
    result, back = relay.vjp(total, wrt="t")(TREE, 2.0)
    assert type(result) is float
    assert shape(back(torch.tensor(1.0))) == shape(tree)


def test_a_float_that_torch_differentiates_stays_a_tensor() -> None:
    scale = torch.tensor(2.0, requires_grad=True)
    value = total(TREE, scale)
    (slope,) = torch.autograd.grad(value, scale)
    assert float(slope) == 13.0
    made = mixed(scale, 3)
    assert made.count == 3
    assert type(made.count) is int
    tree = doubled(Leaf(scale))
    (slope,) = torch.autograd.grad(tree.value, scale)
    assert float(slope) == 2.0


def test_exported_and_saved_models_give_numbers_as_annotated(tmp_path: Path) -> None:
    exported = relay.export_model(relay.create_model(sizes))
    x = torch.ones(3, 4)
    exported.save(tmp_path / "sizes.safetensors")
    loaded = relay.load_model(tmp_path / "sizes.safetensors")
    for model in (exported, loaded):
        tree, y = model(x)
        assert shape(tree) == ("Node", ("Leaf", 3), ("Leaf", 2))
        assert y.shape == (3, 2)
