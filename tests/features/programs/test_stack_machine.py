"""A stack machine: instructions in a list, a stack that grows and shrinks, gradients."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from pyrelay import Float, RunError, relay


@dataclass(frozen=True)
class Push:
    value: Float


@dataclass(frozen=True)
class Add: ...


@dataclass(frozen=True)
class Mul: ...


@dataclass(frozen=True)
class Dup: ...


@dataclass(frozen=True)
class Swap: ...


Instruction = Push | Add | Mul | Dup | Swap


@relay
def run(program: list[Instruction], x: Float) -> Float:
    stack = [x]
    for instruction in program:
        match instruction:
            case Push(value):
                stack.append(value)
            case Add():
                b = stack.pop()
                a = stack.pop()
                stack.append(a + b)
            case Mul():
                b = stack.pop()
                a = stack.pop()
                stack.append(a * b)
            case Dup():
                stack.append(stack[-1])
            case Swap():
                stack[-1], stack[-2] = stack[-2], stack[-1]
    assert len(stack) == 1, "values are left on the stack"
    return stack[-1]


SQUARE_PLUS = [Dup(), Mul(), Push(3.0), Swap(), Add(), Push(2.0), Mul()]


def test_a_program_computes_its_polynomial() -> None:
    torch.testing.assert_close(run(SQUARE_PLUS, 5.0), torch.tensor(2 * (5.0**2 + 3)))


def test_programs_are_differentiated_by_their_input() -> None:
    torch.testing.assert_close(relay.grad(run, wrt="x")(SQUARE_PLUS, 5.0), torch.tensor(20.0))


def test_programs_are_differentiated_by_their_constants() -> None:
    changes = relay.grad(run, wrt="program")(SQUARE_PLUS, 5.0)
    pushed = [float(change.value) for change in changes if isinstance(change, Push)]
    assert pushed == [2.0, 2 * (25.0 + 3.0) / 2.0]


def by_torch(program: list[Instruction], x: torch.Tensor) -> torch.Tensor:
    stack = [x]
    for instruction in program:
        match instruction:
            case Push(value):
                stack.append(torch.as_tensor(value))
            case Dup():
                stack.append(stack[-1])
            case Swap():
                stack[-1], stack[-2] = stack[-2], stack[-1]
            case Add() | Mul():
                b, a = stack.pop(), stack.pop()
                stack.append(a + b if isinstance(instruction, Add) else a * b)
    (result,) = stack
    return result


def test_values_and_gradients_are_those_of_torch() -> None:
    weight = torch.tensor(0.3, requires_grad=True)
    x = torch.tensor(1.7, requires_grad=True)
    program = [Dup(), Dup(), Mul(), Push(weight), Mul(), Add(), Push(-2.0), Swap(), Mul()]
    expected = by_torch(program, x)
    expected.backward()
    plain = [Push(0.3) if isinstance(i, Push) and i.value is weight else i for i in program]
    changes, slope = relay.grad(run)(plain, 1.7)
    torch.testing.assert_close(run(plain, 1.7), expected.detach())
    torch.testing.assert_close(slope, x.grad)
    (at_weight, _) = (change for change in changes if isinstance(change, Push))
    torch.testing.assert_close(at_weight.value, weight.grad)


def test_what_is_left_on_the_stack_is_an_error_at_the_assertion() -> None:
    with pytest.raises(RunError, match="values are left on the stack"):
        run([Dup()], 1.0)


def test_an_empty_stack_is_an_error_at_the_pop() -> None:
    with pytest.raises(RunError, match=r"stack\.pop\(\)"):
        run([Add(), Add()], 1.0)
