"""An interpreter of a small functional language: environments, closures, recursion, gradients."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from pyrelay import Float, RunError, relay


@dataclass(frozen=True)
class Const:
    value: Float


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Term
    right: Term


@dataclass(frozen=True)
class IfPositive:
    condition: Term
    then: Term
    otherwise: Term


@dataclass(frozen=True)
class Lambda:
    parameter: str
    body: Term


@dataclass(frozen=True)
class Apply:
    function: Term
    argument: Term


Term = Const | Name | Binary | IfPositive | Lambda | Apply


@dataclass(frozen=True)
class Number:
    value: Float


@dataclass(frozen=True)
class Closure:
    parameter: str
    body: Term
    environment: Environment | None


Value = Number | Closure


@dataclass(frozen=True)
class Environment:
    name: str
    value: Value
    rest: Environment | None


@relay
def lookup(environment: Environment | None, name: str) -> Value:
    assert environment is not None, f"{name} is not bound"
    if environment.name == name:
        return environment.value
    return lookup(environment.rest, name)


@relay
def number(value: Value) -> Float:
    assert isinstance(value, Number), "a number is needed here"
    return value.value


@relay
def evaluate(term: Term, environment: Environment | None) -> Value:
    match term:
        case Const(value):
            return Number(value)
        case Name(name):
            return lookup(environment, name)
        case Binary(operator, left, right):
            a = number(evaluate(left, environment))
            b = number(evaluate(right, environment))
            if operator == "+":
                return Number(a + b)
            if operator == "-":
                return Number(a - b)
            assert operator == "*", f"{operator} is no operator"
            return Number(a * b)
        case IfPositive(condition, then, otherwise):
            positive = number(evaluate(condition, environment)) > 0
            return evaluate(then if positive else otherwise, environment)
        case Lambda(parameter, body):
            return Closure(parameter, body, environment)
        case Apply(function, argument):
            closure = evaluate(function, environment)
            assert isinstance(closure, Closure), "a function is needed here"
            value = evaluate(argument, environment)
            return evaluate(
                closure.body, Environment(closure.parameter, value, closure.environment)
            )


@relay
def run(term: Term, x: Float) -> Float:
    return number(evaluate(term, Environment("x", Number(x), None)))


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
