"""Relay functions that a script passes to relay functions are part of the program."""

from __future__ import annotations

from typing import TypeVar

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Fn, Int, RunError, Tensor, relay
from pyrelay.prelude import List

A = TypeVar("A")
B = TypeVar("B")
N = Dim("N")


@relay
def square(x: Float) -> Float:
    return x * x


@relay
def twice(f: Fn[[Float], Float], x: Float) -> Float:
    return f(f(x))


@relay
def slope(f: Fn[[Float], Float], x: Float) -> Float:
    return relay.grad(f)(x)


@relay
def pulled(f: Fn[[Float], Float], x: Float) -> Float:
    y, back = relay.vjp(f)(x)
    return back(y)


@relay
def mapped(
    x: Tensor[Float, (N,)], f: Fn[[Tensor[Float, (N,)]], Tensor[Float, (N,)]], *, times: int = 1
) -> Tensor[Float, (N,)]:
    for _ in range(times):
        x = f(x)
    return x


def test_a_function_is_passed_by_name_and_by_position() -> None:
    assert float(twice(square, 3.0)) == 81.0
    assert float(twice(x=2.0, f=square)) == 16.0
    assert float(twice(relay.grad(square), 3.0)) == 12.0
    x = torch.tensor([0.1, 0.2])
    torch.testing.assert_close(mapped(x, relay.sin, times=2), x.sin().sin())
    torch.testing.assert_close(mapped(torch.ones(3), relay.exp), torch.ones(3).exp())


def test_gradients_of_and_through_functions_that_are_passed() -> None:
    assert float(slope(square, 3.0)) == 6.0
    assert float(pulled(square, 3.0)) == 54.0
    assert float(relay.grad(twice, wrt="x")(square, 3.0)) == 108.0
    assert float(relay.grad(slope, wrt="x")(square, 3.0)) == 2.0
    assert float(relay.grad(pulled, wrt="x")(square, 3.0)) == 54.0


def test_torch_autograd_goes_through_functions_that_are_passed() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    twice(square, x).backward()
    assert x.grad is not None
    assert float(x.grad) == 108.0


@relay
def folded(f: Fn[[A, B], A], start: A, xs: List[B]) -> A:
    return start if len(xs) == 0 else folded(f, f(start, xs[0]), xs[1:])


@relay
def longer(n: Int, x: Tensor[Float, (N,)]) -> Int:
    return n + len(x)


@relay
def both(x: Float, y: Float) -> Float:
    return x * y


def test_a_function_that_is_passed_decides_the_types_of_the_others() -> None:
    assert float(folded(both, 1.5, [2.0, 4.0])) == 12.0
    assert int(folded(longer, 1, [torch.ones(2), torch.ones(2)])) == 5
    x = torch.tensor(2.0, requires_grad=True)
    folded(both, x, [3.0, x]).backward()
    assert x.grad is not None
    assert float(x.grad) == 12.0
    with pytest.raises(RunError):
        folded(both, "text", [1.0])


def test_each_function_gives_a_program_of_its_own() -> None:
    @relay
    def cube(x: Float) -> Float:
        return x * x * x

    @relay
    def applied(f: Fn[[Float], Float], x: Float) -> Float:
        return f(x)

    assert (float(applied(square, 2.0)), float(applied(cube, 2.0))) == (4.0, 8.0)
    assert float(applied(square, 3.0)) == 9.0
    assert applied.cache_info().entries == 2
    assert float(applied(lambda x: x + 1.0, 2.0)) == 3.0


def test_a_python_function_runs_and_is_not_differentiated() -> None:
    assert float(twice(torch.sin, torch.tensor(0.5))) == pytest.approx(0.4613, abs=1e-4)
    with pytest.raises(CheckError, match="@relay") as caught:
        slope(lambda x: x * 2.0, 3.0)
    assert caught.value.codes == ("RL304",)


@relay
def scaled(x: Float, by: Float = 2.0, more: Float = 0.5) -> Float:
    return x * by + more


@relay
def of_two(f: Fn[[Float, Float], Float], x: Float) -> Float:
    return f(x, 3.0)


@relay
def with_defaults(xs: list[Float], v: Tensor[Float, (N,)]) -> Float:
    def shifted(x: Float, by: Float = 4.0) -> Float:
        return x + by

    once = relay.map(scaled, xs)[1] + relay.map(shifted, xs)[0]
    return once + twice(scaled, xs[0]) + of_two(scaled, xs[0]) + relay.vmap(scaled)(v).sum()


def test_a_function_that_is_passed_keeps_the_defaults_that_no_argument_takes() -> None:
    xs, v = [2.0, 3.0], torch.tensor([1.0, 2.0])
    expected = 6.5 + 6.0 + 9.5 + 6.5 + 7.0
    assert with_defaults(xs, v) == expected
    assert with_defaults.interpret(xs, v) == expected
    found = relay.grad(with_defaults)(xs, v)
    assert [float(x) for x in found[0]] == [8.0, 2.0]
    assert found[1].tolist() == [2.0, 2.0]
