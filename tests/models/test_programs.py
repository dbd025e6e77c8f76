"""The differentiable interpreter: values, the gradient with respect to a program, training one."""

from __future__ import annotations

import math

import pytest
import torch

from pyrelay import Float, RunError, relay
from pyrelay.models.programs import (
    Add,
    Bound,
    IfPositive,
    Let,
    Multiply,
    Name,
    Number,
    Program,
    Repeat,
    Sine,
    run,
)
from pyrelay.prelude import List

NOTHING: list[Bound] = []


def number(value: float) -> Number:
    return Number(torch.tensor(value))


def bound(name: str, value: float) -> Bound:
    return Bound(name, torch.tensor(value))


@pytest.mark.parametrize(
    ("program", "value"),
    [
        (number(2.0), 2.0),
        (Add(number(2.0), Multiply(number(3.0), Name("x"))), 14.0),
        (Let("y", Name("x"), Multiply(Name("y"), Name("y"))), 16.0),
        (Let("x", number(1.0), Name("x")), 1.0),
        (IfPositive(Add(Name("x"), number(-5.0)), number(1.0), number(-1.0)), -1.0),
        (Sine(Multiply(Name("x"), number(0.5))), math.sin(2.0)),
        (Repeat(3, "z", number(1.0), Multiply(Name("z"), number(2.0))), 8.0),
    ],
)
def test_programs_have_their_values(program: Program, value: float) -> None:
    scope = [bound("x", 4.0)]
    assert float(run(program, scope)) == pytest.approx(value)
    assert float(run.interpret(program, scope)) == pytest.approx(value)


def test_a_name_that_stands_for_nothing_is_the_programs_own_error() -> None:
    with pytest.raises(RunError, match="the program names y, which stands for nothing"):
        run(Name("y"), NOTHING)


def test_the_gradient_of_a_program_is_a_program() -> None:
    program = Add(Multiply(number(3.0), Name("x")), Sine(number(0.5)))
    found = relay.grad(run, wrt="program")(program, [bound("x", 4.0)])
    assert isinstance(found, Add)
    assert isinstance(found.left, Multiply)
    assert isinstance(found.left.left, Number)
    assert float(found.left.left.value) == 4.0
    assert isinstance(found.right, Sine)
    assert isinstance(found.right.of, Number)
    assert float(found.right.of.value) == pytest.approx(math.cos(0.5))


@relay
def error(program: Program, xs: List[Float], ys: List[Float]) -> Float:
    total = 0.0
    for x, y in zip(xs, ys):  # noqa: B905
        total += (run(program, [Bound("x", x)]) - y) ** 2
    return total / len(xs)


def descended(program: Program, grads: Program, rate: float) -> Program:
    """Return a program with its constants moved; programs are shallow, so recursion is enough."""
    match program, grads:
        case Number(value), Number(grad):
            return Number(value - rate * grad)
        case Add(left, right), Add(gl, gr):
            return Add(descended(left, gl, rate), descended(right, gr, rate))
        case Multiply(left, right), Multiply(gl, gr):
            return Multiply(descended(left, gl, rate), descended(right, gr, rate))
        case Sine(of), Sine(grad):
            return Sine(descended(of, grad, rate))
        case _:
            return program


def test_a_program_is_trained() -> None:
    xs = [0.1 * i for i in range(-10, 11)]
    ys = [1.5 * math.sin(2.0 * x) + 0.5 for x in xs]
    inner = Sine(Multiply(number(1.6), Name("x")))
    program: Program = Add(Multiply(number(1.0), inner), number(0.0))
    step = relay.value_and_grad(error, wrt="program")
    first, _ = step(program, xs, ys)
    for _ in range(300):
        _, grads = step(program, xs, ys)
        program = descended(program, grads, 0.1)
    last, _ = step(program, xs, ys)
    assert float(last) < 1e-3 * float(first)
