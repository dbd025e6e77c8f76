"""`relay.equal` of whole values, in programs and in scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
import torch

from pyrelay import Bool, CheckError, Dim, Float, Fn, Int, Tensor, relay, relay_model
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.verify import Stage, verify
from pyrelay.prelude import List
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

N, M = Dim("N"), Dim("M")
T = TypeVar("T")
W = TypeVar("W")


@dataclass(frozen=True)
class Leaf:
    weight: Tensor[Float, (N,)]
    number: Int


@dataclass(frozen=True)
class Node:
    left: Tree
    name: str
    right: Tree
    hint: Int | None


Tree = Leaf | Node


@dataclass(frozen=True)
class Point:
    x: float
    flag: bool


@dataclass(frozen=True)
class Box(Generic[T]):
    inside: List[T]
    pair: tuple[T, Int]


@dataclass(frozen=True)
class Boxed:
    box: Box[Tensor[Float, (N,)]]


@dataclass(frozen=True)
class End(Generic[T]):
    pass


@dataclass(frozen=True)
class More(Generic[T]):
    first: T
    rest: Nest[tuple[T, T]]


Nest = End[T] | More[T]


@relay
def same(a: Tree, b: Tree) -> bool:
    return relay.equal(a, b)


def leaf(*values: float, number: int = 3) -> Tree:
    return Leaf(torch.tensor(values), number)


def node(hint: Any = None, name: str = "n", left: Any = None, right: Any = None) -> Tree:
    return Node(left or leaf(1.0), name, right or leaf(1.0, 2.0), hint)


TREES = [
    leaf(1.0),
    leaf(2.0),
    leaf(1.0, 2.0),
    leaf(1.0, number=4),
    node(),
    node(3),
    node(4),
    node(name="m"),
    node(left=leaf(2.0)),
    node(right=leaf(1.0)),
    node(right=node()),
    node(left=node()),
    leaf(float("nan")),
]


@pytest.mark.parametrize("first", range(len(TREES)))
def test_a_program_and_a_script_tell_the_same_values_apart(first: int) -> None:
    for second, other in enumerate(TREES):
        wanted = first == second and first != len(TREES) - 1
        assert relay.equal(TREES[first], other) is wanted
        assert same(TREES[first], other) is wanted
        assert same.interpret(TREES[first], other) is wanted


@relay
def same_lists(a: List[Tensor[Float, (N,)]], b: List[Tensor[Float, (M,)]]) -> bool:
    return relay.equal(a, b)


def test_lists_of_other_lengths_and_sizes_differ() -> None:
    ones, twos = torch.ones(2), torch.ones(3)
    for run in (same_lists, same_lists.interpret, relay.equal):
        assert run([ones, ones], [ones, ones]) is True
        assert run([ones, ones], [twos, twos]) is False
        assert run([ones, ones], [ones]) is False
        assert run([ones], [ones, ones]) is False
        assert run([], []) is True


@relay
def same_points(a: Point, b: Point) -> bool:
    return relay.equal(a, b)


@relay
def same_boxes(a: Boxed, b: Boxed) -> bool:
    return relay.equal(a, b)


@dataclass(frozen=True)
class Wrapped:
    row: Row[N]
    spare: Tensor[Float, (N, 2)] | None


@dataclass(frozen=True)
class Row(Generic[W]):
    values: Tensor[Float, (W,)]
    rest: Wrapped | None


@relay
def same_wrapped(a: Wrapped, b: Wrapped, x: Tensor[Float, (N,)]) -> bool:
    return relay.equal(a, b) and len(x) > 1


@relay
def same_tuples(a: tuple[Float, tuple[Int, str]], b: tuple[Float, tuple[Int, str]]) -> bool:
    return relay.equal(a, b)


@relay
def is_three(a: Int | None) -> bool:
    return relay.equal(a, 3)


@relay
def is_missing(a: Int | None) -> bool:
    return relay.equal(a, None)


@relay
def starts(xs: List[Int]) -> bool:
    return relay.equal(xs, [1, 2])


@relay
def empty(xs: List[Int]) -> bool:
    return relay.equal(xs, [])


def boxed(*rows: Tensor[Float, (N,)]) -> Boxed:
    return Boxed(Box(relay.List.of(rows), (rows[0], 1)))


@pytest.mark.parametrize("run", [lambda f: f, lambda f: f.interpret], ids=["host", "reference"])
def test_data_whose_sizes_only_a_field_names(run: Callable[[Any], Any]) -> None:
    def wrapped(n: int, depth: int, spare: Any = None, last: float = 1.0) -> Wrapped:
        value = Wrapped(Row(torch.full((n,), last), None), spare)
        for _ in range(depth):
            value = Wrapped(Row(torch.ones(n + 1), value), spare)
        return value

    same = run(same_wrapped)
    x, spare = torch.ones(7), torch.ones(3, 2)
    assert same(wrapped(2, 3), wrapped(2, 3), x) is True
    assert same(wrapped(2, 3), wrapped(2, 3, last=2.0), x) is False
    assert same(wrapped(2, 3), wrapped(2, 2), x) is False
    assert same(wrapped(2, 0), wrapped(3, 0), x) is False
    assert same(wrapped(3, 0, spare), wrapped(3, 0), x) is False
    assert same(wrapped(3, 0, spare), wrapped(3, 0, spare.clone()), x) is True


def test_a_function_inside_of_data_with_sizes_of_its_own_is_refused() -> None:
    @dataclass(frozen=True)
    class Step(Generic[W]):
        row: Tensor[Float, (W,)]
        run: Fn[[Float], Float]

    @dataclass(frozen=True)
    class Holder:
        row: Tensor[Float, (N,)]
        step: Step[N]

    @relay
    def same_holders(a: Holder, b: Holder) -> bool:
        return relay.equal(a, b)

    with pytest.raises(CheckError, match=r"the field `run` of `Step` is .*, which is not compared"):
        same_holders.check()


@pytest.mark.parametrize("run", [lambda f: f, lambda f: f.interpret], ids=["host", "reference"])
def test_records_tuples_optionals_and_generic_data(run: Callable[[Any], Any]) -> None:
    assert run(same_points)(Point(1.0, True), Point(1.0, True)) is True
    assert run(same_points)(Point(1.0, True), Point(1.0, False)) is False
    assert run(same_boxes)(boxed(torch.ones(2)), boxed(torch.ones(2))) is True
    assert run(same_boxes)(boxed(torch.ones(2)), boxed(torch.ones(3))) is False
    assert run(same_tuples)((1.0, (2, "a")), (1.0, (2, "a"))) is True
    assert run(same_tuples)((1.0, (2, "a")), (1.0, (2, "b"))) is False
    assert [run(is_three)(v) for v in (3, 4, None)] == [True, False, False]
    assert [run(is_missing)(v) for v in (3, None)] == [False, True]
    assert [run(starts)(v) for v in ([1, 2], [1], [2, 1])] == [True, False, False]
    assert [run(empty)(v) for v in ([1, 2], [])] == [False, True]


@relay
def holds(same: Fn[[Point, Point], bool], points: List[Point], wanted: Point) -> bool:
    found = False
    for point in points:
        found = found or same(point, wanted)
    return found


@relay
def has(points: List[Point], wanted: Point) -> bool:
    return holds(relay.equal, points, wanted)


def test_the_comparison_is_a_function_to_pass() -> None:
    points = [Point(1.0, True), Point(2.0, False)]
    for run in (has, has.interpret):
        assert run(points, Point(2.0, False)) is True
        assert run(points, Point(2.0, True)) is False
    assert holds(relay.equal, points, Point(1.0, True))


def test_operands_have_the_names_of_torch() -> None:
    assert relay.equal(input=[1], other=[1])
    assert relay.equal(input=torch.ones(1), other=torch.ones(1)).tolist() == [True]


@relay
def elements(x: Tensor[Float, (N,)], y: Float) -> Tensor[Bool, (N,)]:
    return relay.equal(x, y)


def test_tensors_are_compared_element_by_element() -> None:
    x = torch.tensor([1.0, 2.0])
    for run in (elements, elements.interpret, relay.equal):
        assert run(x, 2.0).tolist() == [False, True]


@relay
def weighed(tree: Tree, other: Tree) -> Float:
    match tree:
        case Leaf(weight, number):
            return weight.sum() * number if relay.equal(tree, other) else weight.sum()
        case Node(left, _, right, _):
            return weighed(left, other) + weighed(right, other)


def test_a_comparison_stands_in_a_function_that_is_differentiated() -> None:
    found = relay.grad(weighed, wrt="tree")(node(), leaf(1.0))
    assert found.left.weight.tolist() == [3.0]
    assert found.right.weight.tolist() == [1.0, 1.0]


def test_a_comparison_is_printed_and_read_back() -> None:
    for function in (same, same_lists, same_boxes, same_wrapped, same_tuples, is_three, starts):
        verify(function.module, Stage.TYPED)
        assert alpha_equal(parse_module(to_text(function.module)), function.module)


@relay_model
def compared(tree: Tree, other: Tree, x: Tensor[Float, (1, 2)]) -> Tensor[Float, (1, 2)]:
    scaled = relay.linear(x, out_features=2)
    return scaled if relay.equal(tree, other) else 0.0 * scaled


def test_a_saved_model_compares_data(tmp_path: Path) -> None:
    exported = relay.export_model(relay.create_model(compared, seed=0))
    exported.save(tmp_path / "compared.safetensors")
    loaded = relay.load_model(tmp_path / "compared.safetensors")
    x = torch.ones(1, 2)
    for other in (node(), node(3)):
        torch.testing.assert_close(loaded(node(), other, x), exported(node(), other, x))
    assert loaded(node(), node(), x).abs().sum() > 0
    assert loaded(node(), leaf(1.0), x).abs().sum() == 0


def test_types_that_grow_inside_are_refused() -> None:
    with pytest.raises(CheckError, match=r"Nest\[Int\] has other types .* without end"):
        same_nests.check()


@relay
def same_nests(a: Nest[Int], b: Nest[Int]) -> bool:
    return relay.equal(a, b)


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        (None, None, True),
        (None, torch.ones(1), False),
        ("a", "a", True),
        ("a", "b", False),
        ((1, 2.0), (1, 2.0), True),
        ((1,), [1], False),
        ([1, 2], relay.List.of([1, torch.tensor(2)]), True),
        ([True], [1], False),
        ([torch.tensor(1.0)], [torch.tensor(1.0, dtype=torch.float64)], False),
        ([torch.tensor(0.1)], [0.1], True),
        ([torch.tensor(1)], [1.0], False),
        ([torch.tensor(True)], [True], True),
        (Point(1.0, True), leaf(1.0), False),
    ],
    ids=str,
)
def test_what_a_script_compares(left: Any, right: Any, wanted: bool) -> None:
    assert relay.equal(left, right) is wanted
    assert relay.equal(right, left) is wanted


def test_shared_parts_are_compared_once() -> None:
    left, right = leaf(1.0), leaf(1.0)
    for _ in range(60):
        left, right = node(left=left, right=left), node(left=right, right=right)
    assert relay.equal(left, right)
    assert not relay.equal(left, node(left=left, right=right))
