"""Records, optionals and sizes of a value's own, in programs: values, gradients, types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Fn, Tensor, relay

T = TypeVar("T")
K = TypeVar("K")
M, N = Dim("M"), Dim("N")


@dataclass(frozen=True)
class Point:
    x: Float
    y: float
    value: Float


@dataclass(frozen=True)
class Line:
    start: Point
    end: Point


@dataclass(frozen=True)
class Row:
    items: Tensor[Float, (M,)]
    weights: Tensor[Float, (M,)]
    rest: Row | None = None


@dataclass(frozen=True)
class Perhaps:
    a: Float | None
    b: int | None = None


@dataclass(frozen=True)
class Box(Generic[T]):
    content: T


@dataclass(frozen=True)
class Layer(Generic[K]):
    weight: Tensor[Float, (K, 3)]
    activation: Fn[[Tensor[Float, (N, K)]], Tensor[Float, (N, K)]]


@relay
def squared(p: Point) -> Float:
    return p.x * p.x + p.y * p.y + p.value


@relay
def length(line: Line) -> Float:
    return squared(Point(line.end.x - line.start.x, y=line.end.y, value=line.start.value))


@relay
def dot(r: Row) -> Float:
    return (r.items * r.weights).sum()


@relay
def two_rows(x: Tensor[Float, (N,)], y: Tensor[Float, (3,)]) -> Row:
    return Row(x, x * 2, Row(y, y + 1))


@relay
def perhaps(x: Float, flag: bool) -> Perhaps:
    a = x if flag else None
    return Perhaps(a, 3)


@relay
def pick(x: Float, flag: bool) -> Float | None:
    if flag:
        return None
    return x


@relay
def picked(x: Float, n: int):
    best = x if n > 3 else None
    return Perhaps(best)


@relay
def boxed(x: T) -> Box[Box[T]]:
    return Box(Box(x))


@relay
def unboxed(b: Box[Box[T]]) -> T:
    return b.content.content


@relay
def applied(f: Fn[[Float], Box[Float]], x: Float) -> Float:
    return f(x).content


@relay
def through(x: Float) -> Float:
    return applied(Box, x) + unboxed(boxed(x))


NOWHERE = Point(0.5, 2.0, 1.0)
NESTED = Box((Box(1.5), 3))


@relay
def captured(x: Float) -> tuple[Line, Box[tuple[Box[Float], Float]]]:
    return Line(Point(x, NOWHERE.y, x), NOWHERE), NESTED


@relay
def next_number(x: int | None) -> int | None:
    if x is None:
        return None
    return x + 1


@relay
def across(a: Row, b: Row) -> Float:
    return a.items.sum() * b.weights.sum() * a.items.shape[0] + a.items.mean() * b.weights.mean()


@relay
def run_layer(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 4)]:
    layer = Layer(relay.ones(4, 3), lambda h: relay.tanh(h))
    return layer.activation(x @ layer.weight.T)


def tensor(value: Any) -> torch.Tensor:
    return torch.tensor(value)


def point(x: float, y: float, value: float) -> Point:
    return Point(tensor(x), y, tensor(value))


def same(function: Any, *args: Any) -> Any:
    """Return the result, which compiled code and the evaluator agree on."""
    result = function(*args)
    assert repr(function.interpret(*args)) == repr(result)
    return result


def test_fields_are_read_by_name() -> None:
    assert same(squared, point(1.0, 2.0, 3.0)) == 8.0
    assert same(length, Line(point(1.0, 2.0, 3.0), point(4.0, 1.0, 0.0))) == 13.0


def test_gradients_are_the_same_data_with_cotangents() -> None:
    found = relay.grad(squared)(point(1.0, 2.0, 3.0))
    assert repr(found) == repr(point(2.0, 4.0, 1.0))
    row = Row(torch.ones(3), torch.full((3,), 2.0), Row(torch.ones(2), torch.ones(2)))
    found = relay.grad(dot)(row)
    assert found.items.tolist() == [2.0, 2.0, 2.0]
    assert found.rest.items.tolist() == [0.0, 0.0]


def test_data_joins_torchs_graph() -> None:
    given = Point(tensor(3.0).requires_grad_(), 2.0, tensor(1.0).requires_grad_())
    result: Any = squared(given)
    result.backward()
    assert float(given.x.grad) == 6.0
    assert float(given.value.grad) == 1.0


def test_every_construction_chooses_its_own_sizes() -> None:
    found = same(two_rows, torch.ones(2), torch.ones(3))
    assert (found.items.shape, found.rest.items.shape) == ((2,), (3,))
    assert "where" not in two_rows.type


def test_every_match_opens_its_own_sizes() -> None:
    @relay
    def both(a: Row, b: Row) -> Float:
        return dot(a) + dot(b) + a.items.sum() * b.items.sum()

    row, other = Row(torch.ones(3), torch.ones(3)), Row(torch.ones(2), torch.ones(2))
    assert same(both, row, other) == 11.0
    assert "where" not in both.type


def test_a_value_or_none_is_an_optional() -> None:
    x = tensor(1.5)
    assert same(perhaps, x, True) == Perhaps(x, 3)
    assert same(perhaps, x, False) == Perhaps(None, 3)
    assert same(pick, x, True) is None
    assert same(pick, x, False) == 1.5
    assert same(picked, x, 4).a == 1.5
    assert same(picked, x, 3).a is None


def test_constructors_are_functions_and_data_is_polymorphic() -> None:
    assert same(through, tensor(2.0)) == 4.0
    assert same(boxed, tensor(2.0)) == Box(Box(tensor(2.0)))
    assert same(unboxed, Box(Box((tensor(1), 2)))) == (tensor(1), 2)


def test_captured_instances_are_constants() -> None:
    line, nested = same(captured, tensor(2.0))
    assert repr(line.end) == repr(Point(tensor(0.5), 2.0, tensor(1.0)))
    assert repr(line.start) == repr(Point(tensor(2.0), 2.0, tensor(2.0)))
    assert float(nested.content[0].content) == 1.5


def test_numbers_that_may_be_none_are_pythons_own() -> None:
    assert type(same(next_number, 3)) is int
    assert next_number(3) == 4
    assert same(next_number, None) is None


def test_sizes_of_two_values_do_not_mix_in_gradients() -> None:
    a, b = Row(torch.randn(3), torch.randn(3)), Row(torch.randn(5), torch.randn(5))
    on_a, on_b = relay.grad(across)(a, b)
    x, y = a.items.clone().requires_grad_(), b.weights.clone().requires_grad_()
    (x.sum() * y.sum() * 3 + x.mean() * y.mean()).backward()
    torch.testing.assert_close(on_a.items, x.grad)
    torch.testing.assert_close(on_b.weights, y.grad)
    assert on_b.items.tolist() == [0.0] * 5


def test_a_record_holds_functions() -> None:
    assert same(run_layer, torch.ones(2, 3)).shape == (2, 4)


def test_types_of_type_arguments_are_checked() -> None:
    @relay
    def wrong(b: Box[Tensor[Float, (3,)]]) -> Float:
        return unboxed(Box(b)) + b.content.nothing

    with pytest.raises(CheckError, match="a tensor has no `nothing`"):
        wrong.check()


def test_classes_local_to_a_function_are_data() -> None:
    @dataclass(frozen=True)
    class Leaf:
        amount: Float

    @dataclass(frozen=True)
    class Pair:
        left: Tree
        right: Tree

    Tree = Leaf | Pair  # noqa: N806  a type

    @relay
    def twice(t: Leaf):
        return Pair(t, t)

    found: Any = same(twice, Leaf(tensor(1.0)))
    assert found.left.amount == 1.0
    assert "Tree" in twice.type
