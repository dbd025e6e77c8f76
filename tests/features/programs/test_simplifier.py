"""A simplifier and a differentiator of expressions, written with methods and pattern matching."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pyrelay import Float, relay


@dataclass(frozen=True)
class Number:
    value: float

    def simplified(self) -> Expression:
        return self

    def derivative(self, index: int) -> Expression:
        return Number(0.0)

    def at(self, values: list[Float]) -> Float:
        return self.value

    @property
    def size(self) -> int:
        return 1


@dataclass(frozen=True)
class Variable:
    index: int

    def simplified(self) -> Expression:
        return self

    def derivative(self, index: int) -> Expression:
        return Number(1.0 if self.index == index else 0.0)

    def at(self, values: list[Float]) -> Float:
        return values[self.index]

    @property
    def size(self) -> int:
        return 1


@dataclass(frozen=True)
class Add:
    left: Expression
    right: Expression

    def simplified(self) -> Expression:
        match self.left.simplified(), self.right.simplified():
            case Number(a), Number(b):
                return Number(a + b)
            case (Number(0.0), other) | (other, Number(0.0)):
                return other
            case a, b:
                return Add(a, b)

    def derivative(self, index: int) -> Expression:
        return Add(self.left.derivative(index), self.right.derivative(index))

    def at(self, values: list[Float]) -> Float:
        return self.left.at(values) + self.right.at(values)

    @property
    def size(self) -> int:
        return 1 + self.left.size + self.right.size


@dataclass(frozen=True)
class Mul:
    left: Expression
    right: Expression

    def simplified(self) -> Expression:
        match self.left.simplified(), self.right.simplified():
            case Number(a), Number(b):
                return Number(a * b)
            case (Number(0.0), _) | (_, Number(0.0)):
                return Number(0.0)
            case (Number(1.0), other) | (other, Number(1.0)):
                return other
            case a, b:
                return Mul(a, b)

    def derivative(self, index: int) -> Expression:
        left, right = self.left.derivative(index), self.right.derivative(index)
        return Add(Mul(left, self.right), Mul(self.left, right))

    def at(self, values: list[Float]) -> Float:
        return self.left.at(values) * self.right.at(values)

    @property
    def size(self) -> int:
        return 1 + self.left.size + self.right.size


Expression = Number | Variable | Add | Mul


@relay
def simplify(e: Expression) -> Expression:
    return e.simplified()


@relay
def derivative(e: Expression, index: int) -> Expression:
    return e.derivative(index)


@relay
def evaluate(e: Expression, values: list[Float]) -> Float:
    return e.at(values)


@relay
def size(e: Expression) -> int:
    return e.size


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


def test_the_methods_do_the_same_in_plain_python() -> None:
    assert CUBIC.derivative(0).simplified() == simplify(derivative(CUBIC, 0))
    assert CUBIC.size == size(CUBIC)


def test_gradients_are_those_of_the_methods_over_torch() -> None:
    values = [torch.tensor(v, requires_grad=True) for v in (1.5, -2.0)]
    expected = CUBIC.at(values)
    expected.backward()
    value, slopes = relay.value_and_grad(evaluate, wrt="values")(CUBIC, [1.5, -2.0])
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(list(slopes), [v.grad for v in values])
