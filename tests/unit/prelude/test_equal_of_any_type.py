"""`relay.equal` in polymorphic functions: the same answers as where types are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pytest
import torch

from pyrelay import CheckError, Float, Fn, Int, Tensor, relay
from pyrelay.ir.equality import alpha_equal
from pyrelay.prelude import List
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Leaf(Generic[T]):
    value: T


@dataclass(frozen=True, kw_only=True)
class Node(Generic[T]):
    left: Tree[T]
    right: Tree[T]


Tree = Leaf[T] | Node[T]


@dataclass(frozen=True)
class Point:
    x: Tensor[Float, (2,)]
    name: str


@relay
def same(a: T, b: T) -> bool:
    return relay.equal(a, b)


@relay
def same_trees(a: Tree[T], b: Tree[T]) -> bool:
    return relay.equal(a, b)


@relay
def same_or_none(a: T | None, b: T | None) -> bool:
    return relay.equal(a, b)


@relay
def member(x: T, xs: List[T]) -> bool:
    found = False
    for y in xs:
        found = found or same(x, y)
    return found


@relay
def position(xs: List[T], x: T) -> int:
    found = -1
    for place, y in enumerate(xs):
        if found < 0 and relay.equal((x, place), (y, place)):
            found = place
    return found


@relay
def fixed_point(f: Fn[[T], T], x: T, limit: int) -> T:
    before = x
    for _ in range(limit):
        after = f(before)
        if relay.equal(before, after):
            return after
        before = after
    return before


@relay
def in_programs(x: Float, n: Int, v: Tensor[Float, (2,)]) -> List[bool]:
    return [
        same(x, 2.0 * x),
        same(n, n + 0),
        same(v, v + 0.0),
        same(v, v + 1.0),
        same([x], [x, x]),
        same((x, "a"), (x, "a")),
        same(Point(v, "p"), Point(v, "p")),
        same(Point(v, "p"), Point(v, "q")),
        member(x, [1.0, x]),
        member("c", ["a", "b"]),
        same_trees(Node(left=Leaf(x), right=Leaf(x)), Node(left=Leaf(x), right=Leaf(2.0 * x))),
        same_or_none(x, None),
    ]


@relay
def halves_until_small(x: Float) -> Float:
    return x * 0.5 if x > 1.0 else x


@relay
def settled(x: Float) -> Float:
    return fixed_point(halves_until_small, x, 10) * x


X, V = torch.tensor(3.0), torch.tensor([1.0, 2.0])
NAN = float("nan")
PAIRS: list[tuple[Any, Any, bool]] = [
    (1, 1, True),
    (1, 2, False),
    (True, True, True),
    ("a", "a", True),
    ("a", "b", False),
    (None, None, True),
    (V, V.clone(), True),
    (V, V + 1, False),
    (X, 3.0, True),
    (NAN, NAN, False),
    ([1, 2], [1, 2], True),
    ([1, 2], [1], False),
    ((1, V), (1, V), True),
    (Point(V, "p"), Point(V, "p"), True),
    (Point(V, "p"), Point(V, "q"), False),
    (Leaf(1), Node(left=Leaf(1), right=Leaf(1)), False),
    (Node(left=Leaf(1), right=Leaf(2)), Node(left=Leaf(1), right=Leaf(2)), True),
    (Node(left=Leaf(1), right=Leaf(2)), Node(left=Leaf(1), right=Leaf(3)), False),
]


@pytest.mark.parametrize(("left", "right", "wanted"), PAIRS)
def test_values_of_any_type_are_compared_as_in_a_script(
    left: Any, right: Any, wanted: bool
) -> None:
    assert same(left, right) is wanted
    assert same.interpret(left, right) is wanted
    if not isinstance(left, torch.Tensor):
        assert relay.equal(left, right) is wanted


def test_what_a_program_passes_is_compared() -> None:
    wanted = [False, True, True, False, False, True, True, False, True, False, False, False]
    assert in_programs(X, 3, V).to_list() == wanted
    assert in_programs.interpret(X, 3, V).to_list() == wanted


def test_lists_are_searched_for_values_of_any_type() -> None:
    assert position([1, 2, 3], 3) == 2
    assert position(["a"], "b") == -1
    assert member(V, [V + 1, V.clone()])
    assert same_or_none(None, None)
    assert not same_or_none(3, None)


def test_functions_that_compare_are_differentiated() -> None:
    x = torch.tensor(5.0, requires_grad=True)
    expected = x * 0.5 * 0.5 * 0.5 * x
    (slope,) = torch.autograd.grad(expected, x)
    value, found = relay.value_and_grad(settled)(5.0)
    assert torch.allclose(value, expected.detach())
    assert torch.allclose(found, slope)
    assert torch.allclose(settled.interpret(5.0), value)
    assert relay.grad(fixed_point, wrt="x")(halves_until_small, 1.0, 3) == 1.0


def test_deep_values_are_compared() -> None:
    left: Any = Leaf(1)
    right: Any = Leaf(1)
    for _ in range(20_000):
        left, right = Node(left=left, right=Leaf(2)), Node(left=right, right=Leaf(2))
    assert same(left, right)
    assert not same(left, Node(left=right, right=Leaf(2)))


def test_the_program_is_written_and_read() -> None:
    for function in (same, same_trees, member):
        assert alpha_equal(parse_module(to_text(function.module)), function.module)
    assert "relay.equal(a, b)" in same.show("python")


@dataclass(frozen=True)
class Layer(Generic[T]):
    apply: Fn[[T], T]
    size: int


@relay
def passes_data_with_functions(layer: Layer[Float]) -> bool:
    return member(layer, [layer])


@relay
def passes_them_on(layer: T) -> bool:
    return member(layer, [layer])


@relay
def passes_cells(x: Float) -> bool:
    return passes_them_on((relay.ref(x), 1))


def test_what_holds_functions_or_cells_is_refused_where_it_is_passed() -> None:
    for function, text in (
        (passes_data_with_functions, "member(layer, [layer])"),
        (passes_cells, "passes_them_on((relay.ref(x), 1))"),
    ):
        with pytest.raises(CheckError) as caught:
            function.check()
        (found,) = caught.value.diagnostics
        assert found.code == "RL161"
        assert found.primary is not None
        assert found.primary.span.text == text
