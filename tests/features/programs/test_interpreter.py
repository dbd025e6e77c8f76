"""An interpreter of a small functional language in methods: environments, closures, gradients."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from pyrelay import Float, RunError, relay


@dataclass(frozen=True)
class Const:
    value: Float

    def evaluate(self, environment: Environment) -> Value:
        return Number(self.value)


@dataclass(frozen=True)
class Name:
    name: str

    def evaluate(self, environment: Environment) -> Value:
        return environment.lookup(self.name)


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Term
    right: Term

    def evaluate(self, environment: Environment) -> Value:
        a = self.left.evaluate(environment).number()
        b = self.right.evaluate(environment).number()
        if self.operator == "+":
            return Number(a + b)
        if self.operator == "-":
            return Number(a - b)
        assert self.operator == "*", f"{self.operator} is no operator"
        return Number(a * b)


@dataclass(frozen=True)
class IfPositive:
    condition: Term
    then: Term
    otherwise: Term

    def evaluate(self, environment: Environment) -> Value:
        positive = self.condition.evaluate(environment).number() > 0
        return (self.then if positive else self.otherwise).evaluate(environment)


@dataclass(frozen=True)
class Lambda:
    parameter: str
    body: Term

    def evaluate(self, environment: Environment) -> Value:
        return Closure(self.parameter, self.body, environment)


@dataclass(frozen=True)
class Apply:
    function: Term
    argument: Term

    def evaluate(self, environment: Environment) -> Value:
        function = self.function.evaluate(environment)
        return function.applied(self.argument.evaluate(environment))


Term = Const | Name | Binary | IfPositive | Lambda | Apply


@dataclass(frozen=True)
class Number:
    value: Float

    def number(self) -> Float:
        return self.value

    def applied(self, argument: Value) -> Value:
        raise ValueError("a function is needed here")


@dataclass(frozen=True)
class Closure:
    parameter: str
    body: Term
    environment: Environment

    def number(self) -> Float:
        raise ValueError("a number is needed here")

    def applied(self, argument: Value) -> Value:
        return self.body.evaluate(Environment(self.parameter, argument, self.environment))


Value = Number | Closure


@dataclass(frozen=True)
class Environment:
    name: str
    value: Value
    rest: Environment | None

    def lookup(self, name: str) -> Value:
        if self.name == name:
            return self.value
        assert self.rest is not None, f"{name} is not bound"
        return self.rest.lookup(name)


@relay
def run(term: Term, x: Float) -> Float:
    return term.evaluate(Environment("x", Number(x), None)).number()


def self_applied(body: Term) -> Term:
    """Make `self` mean the function within its own body."""
    return Apply(Lambda("self", Apply(Name("self"), Name("self"))), Lambda("self", body))


N_MINUS_1 = Binary("-", Name("n"), Const(1.0))
POWER = self_applied(
    Lambda(
        "n",
        IfPositive(
            Name("n"),
            Binary("*", Name("x"), Apply(Apply(Name("self"), Name("self")), N_MINUS_1)),
            Const(1.0),
        ),
    )
)


def test_closures_keep_their_environment() -> None:
    add = Lambda("a", Lambda("b", Binary("+", Name("a"), Name("b"))))
    term = Apply(Apply(add, Const(2.0)), Name("x"))
    torch.testing.assert_close(run(term, 3.0), torch.tensor(5.0))


def test_recursion_by_self_application_computes_powers_and_their_derivatives() -> None:
    cube = Apply(POWER, Const(3.0))
    torch.testing.assert_close(run(cube, 2.0), torch.tensor(8.0))
    torch.testing.assert_close(relay.grad(run, wrt="x")(cube, 2.0), torch.tensor(12.0))
    second = relay.grad(relay.grad(run, wrt="x"), wrt="x")
    torch.testing.assert_close(second(cube, 2.0), torch.tensor(12.0))


def test_mistakes_of_the_interpreted_program_are_its_own_errors() -> None:
    with pytest.raises(RunError, match="y is not bound"):
        run(Name("y"), 1.0)
    with pytest.raises(RunError, match="a function is needed here"):
        run(Apply(Const(1.0), Const(2.0)), 1.0)
    with pytest.raises(RunError, match="a number is needed here"):
        run(Lambda("a", Name("a")), 1.0)


def test_plain_python_interprets_the_same_methods() -> None:
    power = Apply(POWER, Const(5.0)).evaluate(Environment("x", Number(2.0), None))
    assert power == Number(32.0)
    torch.testing.assert_close(run(Apply(POWER, Const(5.0)), 2.0), torch.tensor(32.0))


def test_gradients_are_those_of_the_methods_over_torch() -> None:
    cubic = Binary("+", Apply(POWER, Const(3.0)), Binary("*", Name("x"), Const(-4.0)))
    absolute = IfPositive(cubic, cubic, Binary("-", Const(0.0), cubic))
    for at in (2.5, 0.5, -1.0):
        x = torch.tensor(at, requires_grad=True)
        expected = absolute.evaluate(Environment("x", Number(x), None)).number()
        expected.backward()
        value, slope = relay.value_and_grad(run, wrt="x")(absolute, at)
        torch.testing.assert_close(value, expected.detach())
        torch.testing.assert_close(slope, x.grad)
