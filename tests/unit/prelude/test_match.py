"""Lists taken apart by `match` and `isinstance`, with `Cons` and `Nil` and as sequences."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import CheckError, Float, Int, relay
from pyrelay.prelude import Cons, List, Nil


@relay
def by_class(xs: List[Float]) -> Float:
    match xs:
        case Cons(x, rest):
            return x + 2 * by_class(rest)
        case Nil():
            return 0.0


@relay
def by_sequence(xs: List[Float]) -> Float:
    match xs:
        case [x, *rest]:
            return x + 2 * by_sequence(rest)
        case []:
            return 0.0


@relay
def by_test(xs: List[Float]) -> Float:
    if isinstance(xs, Cons):
        return xs.head + 2 * by_test(xs.tail)
    return 0.0


@relay
def in_a_loop(xs: List[Float]) -> Float:
    total = 0.0
    scale = 1.0
    while len(xs) > 0:
        match xs:
            case Cons(head=x, tail=rest):
                total += scale * x
                scale = scale * 2
                xs = rest
            case _:
                pass
    return total


EVERY = [by_class, by_sequence, by_test, in_a_loop]


@pytest.mark.parametrize("function", EVERY)
def test_a_list_is_taken_apart(function: Any) -> None:
    xs = [1.0, 2.0, 3.0]
    assert float(function(xs)) == float(function.interpret(xs)) == 1 + 4 + 12
    assert float(function([])) == 0
    gradient = relay.grad(function)(xs)
    assert [float(g) for g in gradient] == [1.0, 2.0, 4.0]


def test_a_deep_recursion_over_a_list() -> None:
    @relay
    def last(xs: List[Int]) -> Int:
        match xs:
            case Cons(x, Nil()):
                return x
            case Cons(_, rest):
                return last(rest)
            case Nil():
                return -1

    @relay
    def added(xs: List[Int]) -> Int:
        match xs:
            case Cons(x, rest):
                return x + added(rest)
            case Nil():
                return 0

    xs = list(range(20_000))
    assert int(last(xs)) == 19_999
    assert int(added(xs)) == sum(xs)


def test_a_missing_case_is_shown() -> None:
    @relay
    def some(xs: List[Float]) -> Float:
        match xs:
            case Cons(x, Cons(y, _)):
                return x + y
            case Cons(x, Nil()):
                return x

    with pytest.raises(CheckError, match=r"no case matches `\[\]`"):
        some.check()


def test_a_lists_own_recursion_is_differentiated_twice() -> None:
    @relay
    def product(xs: List[Float]) -> Float:
        match xs:
            case Cons(x, rest):
                return x * product(rest)
            case Nil():
                return 1.0

    @relay
    def squared(xs: List[Float]) -> Float:
        return sum([g * g for g in relay.grad(product)(xs)])

    values = [torch.tensor(v, requires_grad=True) for v in (1.5, -2.0, 3.0)]
    whole = values[0] * values[1] * values[2]
    first = torch.autograd.grad(whole, values, create_graph=True)
    wanted = torch.autograd.grad(torch.stack([g * g for g in first]).sum(), values)
    found = relay.grad(squared)([v.detach() for v in values])
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs)
