"""Gradients of hard programs are those that torch finds where Python runs the same text."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import torch

import pyrelay
from pyrelay import Float, Int, relay
from tests.features.gradients import gradient_programs as programs
from tests.features.gradients.gradient_programs import Add, Get, Leaf, Let, Mul, Node, Num
from tests.property.differential.reference import Reference, gradients, tensor

SOURCE: Final = Path(programs.__file__).read_text(encoding="utf-8")

TREE: Final = Node(
    Node(Leaf(0.5), Leaf(-0.25), 0.75, 1),
    Node(Leaf(1.5), Node(Leaf(0.1), Leaf(0.3), -0.5, 0), 1.25, 3),
    0.5,
    2,
)
PATTERNED: Final = (
    (TREE, 0.5),
    (TREE.left, 0.25),
    (TREE.left, 0.75),
    (TREE.right, 0.75),
    (Node(TREE.left, Leaf(0.5), 1.5, 3), 0.75),
)
"""Trees and numbers for which each arm of `patterns` is taken."""
EXPRESSION: Final = Let(
    Mul(Get(0), Add(Get(1), Num(0.5))), Add(Mul(Get(0), Get(0)), Let(Get(1), Mul(Get(0), Get(1))))
)


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values)


def matrix(rows: int, columns: int) -> torch.Tensor:
    numbers = torch.arange(1.0, rows * columns + 1)
    return torch.sin(numbers * 1.7).reshape(rows, columns)


CALLS: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("newton", (2.0,)),
    ("newton", (0.04,)),
    ("collatz_like", (0.7, 6)),
    ("collatz_like", (0.7, 1)),
    ("ackermann_like", (2, 2, 0.5)),
    ("tree_sum", (TREE, 0.75)),
    *(("patterns", (tree, k)) for tree, k in PATTERNED),
    ("rebuilt", (TREE, 0.5)),
    ("evaluate", (EXPRESSION, [0.5, -1.5])),
    ("run_cps", ([0.5, -1.5, 2.0], 0.25)),
    ("composed", (0.5, 1.5, 3)),
    ("histogram", (vector(0.5, 1.5, -1.0, 2.0), torch.tensor([0, 3, 0, 2]))),
    ("prefix", (vector(0.5, 1.5, -1.0, 2.0),)),
    ("running_best", (vector(0.5, 2.5, -1.0, 2.0),)),
    ("swap_sort", (vector(0.5, 2.5, -1.0, 2.0),)),
    ("viterbi", (matrix(3, 3), matrix(3, 3))),
    ("edit", (vector(0.5, 2.5, -1.0), vector(0.75, -0.5))),
    ("early", (vector(0.5, 2.5, -1.0), 1.0)),
    ("early", (vector(0.5, 0.25, -1.0), 10.0)),
    ("early", (vector(1.5, 2.5, 3.0), 0.5)),
    ("refs", (0.75, 4)),
    ("ref_closure", (0.75, 3)),
    ("power_tower", (1.1, 3)),
    ("mutual", (0.75, 5)),
    ("bisect", (0.3, 1.0)),
    ("interp", (vector(0.0, 1.0, 3.0), vector(1.0, 2.0, -1.0), 1.5)),
    ("pairwise", (matrix(4, 2),)),
    ("memo", (6, 0.75)),
    ("stackm", ([0, 2, 1, 3, 1], 0.75, -0.5)),
    ("optional", ([0.5, 1.5, -2.0], -0.75)),
    ("optional", ([], 2.0)),
    ("softmaxed", (vector(0.5, 1.5, -1.0), 3)),
    ("string_switch", (0.75, 5)),
    ("tuples", ((0.5, (1.5, 2)), 3)),
    ("strides", (matrix(4, 3), 2)),
    ("abs_kinks", (vector(0.75, -1.5, 0.25),)),
    ("while_break", (0.5, 4.0)),
    ("while_break", (0.5, 1e9)),
    ("two_of_them", (vector(0.5, 1.5, -1.0),)),
    ("lists_of_lists", ([[0.5, 2.5], [1.0, -1.0, 3.0], []], 0.75)),
)


def leaves(value: Any, found: list[torch.Tensor], names: Mapping[str, Any]) -> Any:
    """Return a value of the classes in `names`, with tensors of its own for its floats, which are
    added to `found`."""
    match value:
        case float():
            return leaves(torch.tensor(value), found, names)
        case torch.Tensor() if value.dtype.is_floating_point:
            leaf = value.clone().requires_grad_()
            found.append(leaf)
            return leaf
        case list() | tuple():
            return type(value)(leaves(v, found, names) for v in value)
        case _ if is_dataclass(value):
            parts = [leaves(getattr(value, f.name), found, names) for f in fields(value)]
            return names[type(value).__name__](*parts)
        case _:
            return value


def floats(value: Any) -> list[torch.Tensor]:
    """Return the floats in a value, as they come."""
    match value:
        case float():
            return [torch.tensor(value)]
        case torch.Tensor():
            return [value] if value.dtype.is_floating_point else []
        case _ if is_dataclass(value):
            parts = [getattr(value, f.name) for f in fields(value)]
            return [f for part in parts for f in floats(part)]
        case int() | str() | None:
            return []
        case _:
            return [f for part in value for f in floats(part)]


def of_torch(name: str, args: tuple[Any, ...]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return the value and the gradients that torch finds."""
    found: list[torch.Tensor] = []
    reference = Reference(SOURCE)
    places = [leaves(a, found, reference.names) for a in args]
    value = tensor(reference.run(name, places))
    return value.detach(), [g.detach() for g in gradients(value, found)]


@pytest.mark.parametrize("lowering", ["auto", "evaluator", "torch-regions"])
@pytest.mark.parametrize(
    ("name", "args"), CALLS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CALLS)]
)
def test_the_gradient_is_that_of_torch(name: str, args: tuple[Any, ...], lowering: str) -> None:
    wanted, derivatives = of_torch(name, args)
    with pyrelay.options(lowering=lowering):
        value, found = relay.value_and_grad(getattr(programs, name))(*args)
    torch.testing.assert_close(value, wanted.float(), rtol=1e-4, atol=1e-5)
    found = floats(found)
    assert len(found) == len(derivatives)
    for one, other in zip(found, derivatives, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


TWICE: Final = (
    ("newton", "a", 2.0, ()),
    ("collatz_like", "x", 0.7, (6,)),
    ("ackermann_like", "x", 0.5, (2, 2)),
    ("tree_sum", "scale", 0.75, (TREE,)),
    ("patterns", "k", 0.75, (TREE.left,)),
    ("rebuilt", "k", 0.5, (TREE,)),
    ("composed", "x", 0.5, (1.5, 3)),
    ("refs", "x", 0.75, (4,)),
    ("ref_closure", "x", 0.75, (3,)),
    ("power_tower", "x", 1.1, (3,)),
    ("mutual", "x", 0.75, (5,)),
    ("memo", "x", 0.75, (6,)),
    ("optional", "k", -0.75, ([0.5, 1.5, -2.0],)),
    ("string_switch", "x", 0.75, (5,)),
    ("while_break", "x", 0.5, (1e9,)),
)
"""Programs, a parameter that is a float, a value of it, and the other arguments."""


@pytest.mark.parametrize("lowering", ["auto", "evaluator"])
@pytest.mark.parametrize(("name", "place", "at", "others"), TWICE)
def test_so_is_the_second_derivative(
    name: str, place: str, at: float, others: tuple[Any, ...], lowering: str
) -> None:
    function = getattr(programs, name)
    index = list(inspect.signature(function).parameters).index(place)
    args = [*others[:index], at, *others[index:]]
    leaf = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    reference = Reference(SOURCE)
    rest = [leaves(a, [], reference.names) for a in others]
    value = reference.run(name, [*rest[:index], leaf, *rest[index:]])
    (first,) = torch.autograd.grad(value, leaf, create_graph=True)
    (second,) = torch.autograd.grad(first, leaf)
    with pyrelay.options(lowering=lowering):
        found = relay.grad(relay.grad(function, wrt=place), wrt=place)(*args)
    torch.testing.assert_close(found, second.float(), rtol=1e-3, atol=1e-4)


@relay
def looked_up(places: list[Int], weight: Float, shift: Int | None, rows: list[list[int]]) -> Float:
    total = 0.0 if shift is None else weight * shift
    for place in places:
        total += weight * weight * place
    return total * len(rows)


def test_lists_and_optionals_of_integers_have_no_gradient() -> None:
    given = ([1, 2], 1.5, 4, [[1], []])
    assert relay.grad(looked_up)(*given) == 2 * (4 + 2 * 1.5 * 3)
    assert relay.grad(relay.grad(looked_up))(*given) == 12.0
    value, tangent = relay.jvp(looked_up)(given, (0.5,))
    assert (value, tangent) == (25.5, 13.0)
    weight = torch.tensor(1.5, requires_grad=True)
    looked_up([1, 2], weight, None, [[0]]).backward()
    assert weight.grad == 9.0


@relay
def within(places: list[Int], weight: Float) -> Float:
    return relay.grad(looked_up)(places, weight, None, [[1]])


def test_nor_have_they_in_a_program() -> None:
    assert within([1, 2], 1.5) == 9.0
