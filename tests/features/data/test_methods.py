"""Methods and properties of frozen dataclasses, against the same methods in plain Python."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import pytest
import torch

from pyrelay import Dim, Float, Tensor, relay, relay_model

T = TypeVar("T")
K = Dim("K")


@dataclass(frozen=True)
class Leaf(Generic[T]):
    value: T

    def depth(self) -> int:
        return 1

    def leaves(self) -> int:
        return 1

    def is_balanced(self) -> bool:
        return True

    @property
    def height(self) -> int:
        return 0

    def folded(self, zero: T) -> T:
        return self.value


@dataclass(frozen=True)
class Node(Generic[T]):
    left: Tree[T]
    right: Tree[T]
    height: int

    def depth(self) -> int:
        return 1 + max(self.left.depth(), self.right.depth())

    def leaves(self) -> int:
        return self.left.leaves() + self.right.leaves()

    def is_balanced(self) -> bool:
        if not self.left.is_balanced():
            return False
        apart = self.left.depth() - self.right.depth()
        return -1 <= apart <= 1 and self.right.is_balanced()

    def swapped(self) -> Tree[T]:
        return Node(self.right, self.left, self.height)

    def spread(self, least: int = 0, *, scale: int = 1) -> int:
        both = self.left.leaves() - self.right.leaves()
        return max(least, both * scale)

    def folded(self, zero: T) -> T:
        return self.left.folded(zero)


Tree = Leaf[T] | Node[T]


class Described(ABC):
    """A base that is no dataclass, whose methods its subclasses inherit."""

    @abstractmethod
    def area(self) -> Float: ...

    def doubled(self) -> Float:
        return self.area() * 2.0

    def ratio(self, other: Shape) -> Float:
        return self.area() / other.area()


@dataclass(frozen=True)
class Circle(Described):
    radius: Float

    def area(self) -> Float:
        return 3.0 * self.radius * self.radius

    def round_trip(self, steps: int) -> Float:
        return self.radius if steps == 0 else self.square().round_trip(steps - 1)

    def square(self) -> Square:
        return Square(self.radius * 2.0)

    def sum(self) -> Float:
        return self.radius


@dataclass(frozen=True)
class Square(Described):
    side: Float

    def area(self) -> Float:
        return self.side**2

    def round_trip(self, steps: int) -> Float:
        return self.side if steps == 0 else Circle(self.side).round_trip(steps - 1)

    def sum(self) -> Float:
        return 4.0 * self.side

    @staticmethod
    def unit() -> Square:
        return Square(1.0)

    @classmethod
    def of_area(cls, area: Float) -> Self:
        return cls(area**0.5)


Shape = Circle | Square


@dataclass(frozen=True)
class Account:
    balance: Float

    def area(self) -> Float:
        return self.balance

    def report(self, path: Path) -> str:
        with path.open() as file:
            return file.read()


@dataclass(frozen=True)
class Stack:
    items: list[Float]

    def append(self, x: Float) -> Stack:
        return Stack([*self.items, x])

    def pop(self) -> tuple[Float, Stack]:
        return self.items[-1], Stack(self.items[:-1])

    @property
    def top(self) -> Float:
        return self.items[-1]

    @functools.cached_property
    def size(self) -> int:
        return len(self.items)


@dataclass(frozen=True)
class Affine:
    weight: Tensor[Float, (K, K)]
    bias: Tensor[Float, (K,)]

    def apply(self, x: Tensor[Float, (K,)]) -> Tensor[Float, (K,)]:
        return self.weight @ x + self.bias


SCALE = Circle(2.0)

# What is computed: plain Python when it is called as it is, a relay function by `relay`.


def depths(tree: Tree[Float]) -> int:
    return tree.depth() * 100 + tree.leaves() * 10 + int(tree.is_balanced())


def heights(tree: Tree[Float]) -> int:
    return tree.height


def narrowed(tree: Tree[Float]) -> int:
    if isinstance(tree, Node):
        other = tree.swapped()
        assert isinstance(other, Node)
        return tree.spread() + tree.spread(1, scale=3) * 7 + other.spread(least=2)
    return -1


def matched(tree: Tree[Float]) -> int:
    match tree:
        case Node(Node() as inner, _):
            return inner.spread(scale=2)
        case Node() as outer:
            return outer.swapped().leaves() + outer.spread()
        case Leaf():
            return tree.depth()


def folded(tree: Tree[Float]) -> Float:
    return tree.folded(0.0) * 2.0


def areas(shapes: list[Shape]) -> Float:
    return sum([s.area() for s in shapes]) + sum(s.doubled() for s in shapes if s.area() > 1.0)


def in_a_loop(shapes: list[Shape], times: int) -> Float:
    total = 0.0
    i = 0
    while i < times:
        for shape in shapes:
            total += shape.ratio(SCALE) * i
        i += 1
    return total


def by_key(x: Float) -> Float:
    accounts = [Account(x), Account(2.0 * x), Account(1.0)]
    best = max(accounts, key=lambda a: a.area())
    return best.area() + sorted(accounts, key=lambda a: a.area())[0].balance


def named_like_operators(x: Tensor[Float, (K,)], shape: Shape) -> Float:
    y = x * 2.0
    z = Square(3.0)
    return y.sum() + shape.sum() * z.sum()


def made_by_the_class(x: Float) -> Float:
    return Square.of_area(x).sum() + Square.unit().area() + Circle.area(Circle(x))


def mutually(shape: Shape, steps: int) -> Float:
    return shape.round_trip(steps)


def stacked(x: Float) -> Float:
    stack = Stack([x]).append(2.0)
    stack = stack.append(3.0 * x)
    a, stack = stack.pop()
    b, stack = stack.pop()
    numbers = [a]
    numbers.append(b)
    c = numbers.pop()
    return a * 100.0 + b * 10.0 + stack.top + c + stack.size


def a_stack_in_a_loop(xs: list[Float]) -> Float:
    stack = Stack([])
    for x in xs:
        stack = stack.append(x)
        if stack.size > 2:
            top, stack = stack.pop()
            stack = stack.append(top * 0.5)
    return stack.top + stack.size


def a_parameter_that_changes(stack: Stack, x: Float) -> Float:
    for i in range(3):
        stack = stack.append(x * i)
    x, stack = stack.pop()
    return x + stack.top


def captured(x: Float) -> Float:
    return SCALE.area() * x + SCALE.radius


def by_a_nested_function(shape: Shape, x: Float) -> Float:
    def grown(by: Float) -> Float:
        return shape.area() * by

    return grown(x) + (lambda s: s.area())(Account(x))


def tree() -> Tree[Any]:
    inner = Node(Leaf(1.0), Node(Leaf(2.0), Leaf(3.0), 1), 2)
    return Node(inner, Leaf(4.0), 3)


SHAPES = [Circle(0.5), Square(2.0), Circle(1.5)]
PROGRAMS = [
    (depths, (tree(),)),
    (depths, (Leaf(1.0),)),
    (heights, (tree(),)),
    (heights, (Leaf(1.0),)),
    (narrowed, (tree(),)),
    (narrowed, (Leaf(1.0),)),
    (matched, (tree(),)),
    (matched, (Node(Leaf(1.0), Leaf(2.0), 1),)),
    (matched, (Leaf(1.0),)),
    (folded, (tree(),)),
    (areas, (SHAPES,)),
    (in_a_loop, (SHAPES, 3)),
    (by_key, (3.0,)),
    (named_like_operators, (torch.ones(3), Square(0.5))),
    (made_by_the_class, (4.0,)),
    (mutually, (Square(3.0), 5)),
    (mutually, (Circle(3.0), 4)),
    (stacked, (4.0,)),
    (a_stack_in_a_loop, ([1.0, 2.0, 4.0, 8.0],)),
    (a_parameter_that_changes, (Stack([1.0]), 2.5)),
    (captured, (3.0,)),
    (by_a_nested_function, (Square(2.0), 3.0)),
]


@pytest.mark.parametrize(("program", "args"), PROGRAMS)
def test_a_method_computes_what_python_does(
    program: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    assert float(relay(program)(*args)) == pytest.approx(float(program(*args)), rel=1e-6)


@pytest.mark.parametrize(
    ("program", "args"),
    [(folded, (tree(),)), (areas, (SHAPES,)), (mutually, (Square(3.0), 5)), (stacked, (4.0,))],
)
def test_gradients_go_through_methods(program: Callable[..., Any], args: tuple[Any, ...]) -> None:
    compiled = relay(program)
    step = 1e-3
    found = relay.grad(compiled, wrt=next(iter(program.__annotations__)))(*args)
    ahead, behind = (program(_moved(args[0], by), *args[1:]) for by in (step, -step))
    assert _total(found) == pytest.approx((float(ahead) - float(behind)) / (2 * step), rel=1e-2)


def _moved(value: Any, by: float) -> Any:
    """Return a value with all floats in it moved."""
    if isinstance(value, float):
        return value + by
    if isinstance(value, list):
        return [_moved(v, by) for v in value]
    if hasattr(value, "__dataclass_fields__"):
        return type(value)(*(_moved(getattr(value, f), by) for f in value.__dataclass_fields__))
    return value


def _total(value: Any) -> float:
    """Return the sum of all floats in a gradient."""
    if isinstance(value, torch.Tensor):
        return float(value)
    if hasattr(value, "__dataclass_fields__"):
        names = value.__dataclass_fields__
        return sum(_total(getattr(value, n)) for n in names if n != "height")
    return sum(_total(v) for v in value) if hasattr(value, "__iter__") else 0.0


@relay_model
def net(x: Tensor[Float, (K,)], layer: Affine) -> Tensor[Float, (2,)]:
    return relay.linear(relay.relu(layer.apply(x)), out_features=2)


def test_a_method_is_called_in_a_model() -> None:
    model = relay.create_model(net, seed=0, dims={K: 3})
    layer = Affine(torch.eye(3), torch.ones(3))
    expected = torch.nn.functional.linear(
        torch.relu(layer.apply(torch.arange(3.0))), *model.parameters()
    )
    torch.testing.assert_close(model(torch.arange(3.0), layer), expected)


@relay_model
def scorer(x: Tensor[Float, (3,)]) -> Tensor[Float, (1,)]:
    return relay.linear(x, out_features=1)


@dataclass(frozen=True)
class Candidate:
    features: Tensor[Float, (3,)]

    def score(self) -> Float:
        return scorer(self.features).sum()


@relay
def best_score(candidates: list[Candidate]) -> Float:
    return max(c.score() for c in candidates)


def test_a_method_uses_the_model_that_its_caller_is_given() -> None:
    model = relay.create_model(scorer, seed=0)
    candidates = [Candidate(torch.eye(3)[i]) for i in range(3)]
    expected = max(model(c.features).sum() for c in candidates)
    torch.testing.assert_close(model.bind(best_score)(candidates), expected)


def test_a_method_stays_plain_python_outside() -> None:
    assert isinstance(Circle(2.0).area(), float)
    assert not hasattr(Circle.area, "__relay__")
