"""A simplifier and a differentiator of expressions, written with methods and pattern matching."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pyrelay import Float, relay


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Variable:
    index: int


@dataclass(frozen=True)
class Add:
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Mul:
    left: Expression
    right: Expression


Expression = Number | Variable | Add | Mul


@relay
def simplify(e: Expression) -> Expression:
    match e:
        case Add(left, right):
            match simplify(left), simplify(right):
                case Number(a), Number(b):
                    return Number(a + b)
                case (Number(0.0), other) | (other, Number(0.0)):
                    return other
                case a, b:
                    return Add(a, b)
        case Mul(left, right):
            match simplify(left), simplify(right):
                case Number(a), Number(b):
                    return Number(a * b)
                case (Number(0.0), _) | (_, Number(0.0)):
                    return Number(0.0)
                case (Number(1.0), other) | (other, Number(1.0)):
                    return other
                case a, b:
                    return Mul(a, b)
        case _:
            return e


@relay
def derivative(e: Expression, index: int) -> Expression:
    match e:
        case Number():
            return Number(0.0)
        case Variable(i):
            return Number(1.0 if i == index else 0.0)
        case Add(left, right):
            return Add(derivative(left, index), derivative(right, index))
        case Mul(left, right):
            return Add(Mul(derivative(left, index), right), Mul(left, derivative(right, index)))


@relay
def size(e: Expression) -> int:
    if isinstance(e, (Add, Mul)):
        return 1 + size(e.left) + size(e.right)
    return 1


@relay
def evaluate(e: Expression, values: list[Float]) -> Float:
    match e:
        case Number(value):
            return value
        case Variable(i):
            return values[i]
        case Add(left, right):
            return evaluate(left, values) + evaluate(right, values)
        case Mul(left, right):
            return evaluate(left, values) * evaluate(right, values)


X, Y = Variable(0), Variable(1)
CUBIC = Add(Mul(X, Mul(X, X)), Mul(Number(2.0), Mul(X, Y)))


def test_units_and_constants_are_folded() -> None:
    assert simplify(Add(Mul(Number(1.0), X), Number(0.0))) == X
    folded = simplify(Mul(Number(2.0), Add(Number(3.0), Number(4.0))))
    assert isinstance(folded, Number)
    assert folded.value == 14.0


def test_derivatives_of_expressions_equal_gradients_of_their_evaluation() -> None:
    values = [torch.tensor(1.5), torch.tensor(-2.0)]
    symbolic = [evaluate(simplify(derivative(CUBIC, i)), values) for i in (0, 1)]
    numeric = relay.grad(evaluate, wrt="values")(CUBIC, values)
    torch.testing.assert_close(symbolic, list(numeric))


def test_simplifying_keeps_values_and_removes_nodes() -> None:
    raw = derivative(CUBIC, 0)
    values = [torch.tensor(0.3), torch.tensor(4.0)]
    torch.testing.assert_close(evaluate(simplify(raw), values), evaluate(raw, values))
    assert size(simplify(raw)) < size(raw)
