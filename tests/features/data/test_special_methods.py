"""Operators that frozen dataclasses define: `p + q`, `2.0 * p`, `p[i]`, `p(x)`, `len(p)`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Fn, Int, Tensor, relay

N = Dim("N")


@dataclass(frozen=True)
class Vector:
    x: Float
    y: Float

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.x + other.x, self.y + other.y)

    def __neg__(self) -> Vector:
        return Vector(-self.x, -self.y)

    def __mul__(self, by: Float) -> Vector:
        return Vector(self.x * by, self.y * by)

    def __rmul__(self, by: Float) -> Vector:
        return self * by

    def __call__(self, at: Float) -> Float:
        return self.x * at + self.y

    def __getitem__(self, place: Int) -> Float:
        return self.x if place == 0 else self.y

    def __len__(self) -> int:
        return 2

    def __lt__(self, other: Vector) -> bool:
        return self.x < other.x

    def __eq__(self, other: Vector) -> bool:  # type: ignore[override]
        return self.x == other.x


@dataclass(frozen=True)
class Circle:
    radius: Float

    def __lt__(self, other: Shape) -> bool:
        return self.radius < 1.0


@dataclass(frozen=True)
class Square:
    side: Float

    def __lt__(self, other: Shape) -> bool:
        return self.side < 2.0


Shape = Circle | Square


def moved(p: Vector, q: Vector, by: Float) -> Vector:
    return -(p + q * by) + 2.0 * p


def read(p: Vector, at: Float, place: Int):
    return p(at) + p[place] + p[0] * len(p)


def compared(p: Vector, q: Vector):
    return p < q, p == q, p == p


def of_tensors_and_data(ps: list[Vector], x: Tensor[Float, (N,)], n: int) -> Float:
    xs = [x, x * 2.0]
    z = xs[0] + xs[1]
    total = 0.0
    for i, p in enumerate(ps):
        total += (p * z[i])[0] + len(z) - len(ps) + x[n - 1]
    return -total


def smaller(a: Shape, b: Shape) -> bool:
    return a < b


def shifted(p: Vector, by: Float) -> Vector:
    return dataclasses.replace(p, x=p.x + by)


P, Q = Vector(1.0, 2.0), Vector(3.0, 4.0)


def plain(value: Any) -> Any:
    """Return a value with its tensors as numbers."""
    if isinstance(value, Vector):
        return (plain(value.x), plain(value.y))
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.item() if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (moved, (P, Q, 0.5)),
        (read, (P, 3.0, 1)),
        (compared, (P, Q)),
        (of_tensors_and_data, ([P, Q], torch.tensor([1.0, 2.0]), 2)),
        (smaller, (Circle(0.5), Square(3.0))),
        (smaller, (Square(3.0), Circle(0.5))),
        (shifted, (P, 0.5)),
    ],
    ids=lambda case: getattr(case, "__name__", None),
)
def test_a_special_method_is_called_as_in_python(function: Any, args: tuple[Any, ...]) -> None:
    compiled = relay(function)
    expected = plain(function(*args))
    assert plain(compiled(*args)) == expected
    assert plain(compiled.interpret(*args)) == expected


def test_special_methods_are_differentiated() -> None:
    @relay
    def length(p: Vector, by: Float) -> Float:
        moved_ = 2.0 * p + p * by
        return moved_[0] * moved_[1]

    assert plain(relay.grad(length)(P, 1.0)) == ((18.0, 9.0), 12.0)


def test_a_class_without_the_method_is_refused() -> None:
    @relay
    def less(p: Circle) -> Float:
        return (p * 2.0).radius

    with pytest.raises(CheckError):
        less.check()


def test_what_is_called_may_be_a_function_beside_such_a_class() -> None:
    @relay
    def applied(f: Fn[[Float], Float], p: Vector) -> Float:
        return f(1.0) + p(1.0)

    @relay
    def main(p: Vector) -> Float:
        return applied(lambda x: x * 10.0, p) + applied(lambda _: 1, p)

    assert main(P).item() == 17.0


@relay
def renamed(shape: Shape, by: Float) -> Shape:
    if isinstance(shape, Circle):
        return dataclasses.replace(shape, radius=by)
    return dataclasses.replace(shape, side=by)


def test_a_field_is_replaced_in_the_class_that_a_test_has_shown() -> None:
    assert renamed(Circle(1.0), 2.0).radius.item() == 2.0
    assert renamed(Square(1.0), 2.0).side.item() == 2.0


def test_a_number_on_the_left_calls_the_method_of_the_right_operand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @relay
    def f(v: Vector, by: float, x: Tensor[Float, (3,)]):
        scaled = by * v
        return scaled.x, ((by + 1.0) * scaled).y, by * x * by

    x, y, same = f(Vector(1.0, 2.0), 0.5, torch.ones(3))
    assert (x, y) == (0.5, 1.5)
    assert torch.equal(same, torch.full((3,), 0.25))

    @relay
    def in_order(v: Vector) -> Float:
        def left(x: Float) -> Float:
            print("left")  # noqa: T201
            return x

        def right(w: Vector) -> Vector:
            print("right")  # noqa: T201
            return w

        return (left(v.x) * right(v)).y

    assert in_order(Vector(3.0, 2.0)) == 6.0
    assert capsys.readouterr().out == "left\nright\n"
