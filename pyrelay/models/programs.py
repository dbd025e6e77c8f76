"""A differentiable interpreter of a small language: programs are data, and can be trained.

A program is a value of a data type with names, conditions and loops in it. `run` evaluates it on
tensors; the gradient of a loss with respect to the program is a program of the same shape, whose
numbers are the gradients of its constants. No tensor framework can say this, because there the
interpreter's own control flow is not part of what is differentiated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..annotations import Float, Int
from ..decorators import relay
from ..prelude import Cons, List


@dataclass(frozen=True)
class Number:
    """A constant, which training may change."""

    value: Float


@dataclass(frozen=True)
class Name:
    """The value of a name."""

    name: str


@dataclass(frozen=True)
class Add:
    """The sum of two programs."""

    left: Program
    right: Program


@dataclass(frozen=True)
class Multiply:
    """The product of two programs."""

    left: Program
    right: Program


@dataclass(frozen=True)
class Sine:
    """The sine of a program."""

    of: Program


@dataclass(frozen=True)
class Let:
    """A program with a name for the value of another."""

    name: str
    value: Program
    body: Program


@dataclass(frozen=True)
class IfPositive:
    """One of two programs."""

    condition: Program
    then: Program
    otherwise: Program


@dataclass(frozen=True)
class Repeat:
    """A program run several times, each time with the name standing for the value before."""

    times: Int
    name: str
    start: Program
    body: Program


Program: TypeAlias = Number | Name | Add | Multiply | Sine | Let | IfPositive | Repeat


@dataclass(frozen=True)
class Bound:
    """A name and its value."""

    name: str
    value: Float


@relay
def look_up(name: str, scope: List[Bound]) -> Float:
    """Return the value of a name: that of its innermost binding."""
    for bound in scope:
        if bound.name == name:
            return bound.value
    raise NameError(f"the program names {name}, which stands for nothing")


@relay
def run(program: Program, scope: List[Bound]) -> Float:
    """Return the value of a program in a scope."""
    match program:
        case Number(value):
            return value
        case Name(name):
            return look_up(name, scope)
        case Add(left, right):
            return run(left, scope) + run(right, scope)
        case Multiply(left, right):
            return run(left, scope) * run(right, scope)
        case Sine(of):
            return relay.sin(run(of, scope))
        case Let(name, value, body):
            return run(body, Cons(Bound(name, run(value, scope)), scope))
        case IfPositive(condition, then, otherwise):
            return run(then, scope) if run(condition, scope) > 0 else run(otherwise, scope)
        case Repeat(times, name, start, body):
            value = run(start, scope)
            for _ in range(times):
                value = run(body, Cons(Bound(name, value), scope))
            return value
