"""Transforms of functions that are passed functions, also in the arguments of forward mode, and
where these functions are polymorphic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
import torch

from pyrelay import CheckError, Dim, Fn, Tensor, float64, relay

N = Dim("N")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class Point:
    x: float64
    y: float64


@relay
def times(f: Fn[[float64], float64], x: float64) -> float64:
    return f(x) * x


@relay
def square(x: float64) -> float64:
    return x * x


@relay
def area(p: Point) -> float64:
    return p.x * p.y


@relay
def dot(x: Tensor[float64, (N,)]) -> float64:
    return (x * x).sum()


@relay
def applied(f: Fn[[S], T], x: S) -> T:
    return f(x)


@relay
def swapped(x: T, y: T) -> tuple[T, T]:
    return y, x


@relay
def directions(x: float64, v: float64) -> tuple[float64, float64, float64, float64]:
    value, tangent = relay.jvp(times, wrt="x")((square, x), (v,))
    arguments = lambda_and(x, v)
    _, other = arguments
    product = relay.hvp(times, wrt="x")((square, x), (v,))
    return value, tangent, other, product


@relay
def lambda_and(x: float64, v: float64) -> tuple[float64, float64]:
    return relay.jvp(times, wrt="x")((lambda a: relay.sin(a) * v, x), (v,))


@relay
def through_a_parameter(f: Fn[[float64], float64], x: float64) -> float64:
    _, tangent = relay.jvp(times, wrt="x")((f, x), (x,))
    return tangent


@relay
def with_the_parameter(x: float64) -> float64:
    return through_a_parameter(square, x) + through_a_parameter(lambda a: a, x)


@relay
def slopes(x: float64, xs: Tensor[float64, (N,)]) -> tuple[float64, float64, Tensor[float64, (N,)]]:
    slope = relay.grad(applied, wrt="x")(square, x)
    _, tangent = relay.jvp(applied, wrt="x")((square, x), (x,))
    return slope, tangent, relay.vmap(applied, in_axes=(None, 0))(square, xs)


def number(x: float) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


X, V = number(1.5), number(2.0)
XS = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


def test_the_arguments_of_forward_mode_may_contain_functions() -> None:
    other = (torch.cos(X) * X + torch.sin(X)) * V * V
    expected = (X**3, 3 * X**2 * V, other, 6 * X * V)
    torch.testing.assert_close(directions(X, V), expected)
    torch.testing.assert_close(with_the_parameter(X), 3 * X**3 + 2 * X**2)


def test_a_script_passes_functions_in_the_arguments_of_forward_mode() -> None:
    push = relay.jvp(times, wrt="x")
    torch.testing.assert_close(push((square, X), (V,)), (X**3, 3 * X**2 * V))
    torch.testing.assert_close(push((relay.sin, X), (V,))[0], torch.sin(X) * X)
    torch.testing.assert_close(push((square, X), (V,)), (X**3, 3 * X**2 * V))
    torch.testing.assert_close(relay.hvp(times, wrt="x")((square, X), (V,)), 6 * X * V)
    twice = relay.jvp(relay.jvp(times, wrt="x"))(((square, X), (V,)), ((V,), (X,)))
    expected = (X**3, 3 * X**2 * V), (3 * X**2 * V, 6 * X * V * V + 3 * X**2 * X)
    torch.testing.assert_close(twice, expected)
    mapped = relay.jvp(relay.vmap(times, in_axes=(None, 0)), wrt="x")
    torch.testing.assert_close(mapped((square, XS), (XS,)), (XS**3, 3 * XS**3))


def test_transforms_of_polymorphic_functions_take_functions_in_programs() -> None:
    torch.testing.assert_close(slopes(X, XS), (2 * X, 2 * X * X, XS**2))


@pytest.mark.parametrize(
    ("axes", "arguments", "expected"),
    [
        ((None, 0), (square, XS), XS**2),
        (0, (square, XS), XS**2),
        ((None, 0), (dot, torch.stack([XS, 2 * XS])), dot(XS) * number(1.0) * torch.tensor([1, 4])),
        ((None, 1), (dot, torch.stack([XS, XS], dim=1)), torch.stack([dot(XS), dot(XS)])),
        ((None, 0), (area, Point(XS, XS)), XS**2),
        ((None, 0), (area, [Point(X, V), Point(V, V)]), torch.stack([X * V, V * V])),
    ],
)
def test_a_polymorphic_function_that_takes_a_function_is_mapped(
    axes: Any, arguments: Any, expected: torch.Tensor
) -> None:
    torch.testing.assert_close(relay.vmap(applied, in_axes=axes)(*arguments), expected)


def test_a_type_parameter_may_be_that_of_an_element_and_of_what_is_not_mapped() -> None:
    found = relay.vmap(swapped, in_axes=(0, None))(XS, V)
    torch.testing.assert_close(found, (V.expand(3), XS))


def test_axes_name_the_functions_in_the_arguments_of_forward_mode() -> None:
    axes = ((None, 0), 0)
    pushed = relay.vmap(relay.jvp(times, wrt="x"), in_axes=axes)
    torch.testing.assert_close(pushed((square, XS), (XS,)), (XS**3, 3 * XS**3))
    product = relay.vmap(relay.hvp(times, wrt="x"), in_axes=((None, 0), None))
    torch.testing.assert_close(product((square, XS), (V,)), 6 * XS * V)
    twice = relay.vmap(pushed, in_axes=((None, 0), None))
    found = twice((square, torch.stack([XS, 2 * XS])), (V.expand(3),))
    torch.testing.assert_close(found[1], torch.stack([3 * XS**2 * V, 12 * XS**2 * V]))


def test_a_gradient_of_a_polymorphic_function_is_mapped() -> None:
    slope = relay.grad(applied, wrt="x")
    torch.testing.assert_close(relay.vmap(slope, in_axes=(None, 0))(square, XS), 2 * XS)


@relay
def powers(
    fs: tuple[Fn[[float64], float64], tuple[float64, Fn[[float64], float64]]], x: float64
) -> float64:
    first, (k, second) = fs
    return first(x) * second(x) * k


@relay
def shifted(by: float64) -> Fn[[float64], float64]:
    return lambda x: x + by


def test_functions_in_tuples_are_looked_into() -> None:
    x, slope = torch.tensor(3.0, dtype=torch.float64), relay.grad(powers, wrt="x")
    for k in (2.0, 5.0):
        assert float(slope((square, (k, square)), x)) == 4.0 * 27.0 * k
        assert float(slope((shifted(1.0), (k, square)), x)) == (9.0 + 4.0 * 6.0) * k
        assert float(slope((shifted(2.0), (k, square)), x)) == (9.0 + 5.0 * 6.0) * k
        pushed = relay.jvp(powers, wrt="x")(((square, (k, square)), x), (torch.ones_like(x),))
        assert [float(v) for v in pushed] == [81.0 * k, 108.0 * k]
    mapped = relay.vmap(relay.grad(powers, wrt="x"), in_axes=(None, 0))
    assert mapped((square, (1.0, square)), torch.stack([x, x])).tolist() == [108.0, 108.0]


def test_functions_in_what_is_differentiated_are_refused() -> None:
    x = torch.tensor(3.0, dtype=torch.float64)
    for slope in (relay.grad(powers), relay.grad(powers, wrt="fs")):
        with pytest.raises(CheckError) as caught:
            slope((square, (2.0, square)), x)
        assert caught.value.codes == ("RL304",)
