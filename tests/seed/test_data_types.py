"""The introduction to algebraic data types, from Python: definitions, type parameters, recursion,
patterns. Each program stands as it stands there; the values are those it states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Optional, TypeVar

import pytest
import torch

from pyrelay import CheckError, Float, Int, RunError, Tensor, relay
from pyrelay.prelude import Cons, List, Nil

from .values import agree

A = TypeVar("A")


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Single:
    x: Int


@dataclass(frozen=True)
class Pair:
    x: Int
    y: Int


Numbers = Empty | Single | Pair


@dataclass(frozen=True)
class Empty2:
    pass


@dataclass(frozen=True)
class Single2:
    x: Int


@dataclass(frozen=True)
class Pair2:
    x: Int
    y: Int


Numbers2 = Empty2 | Single2 | Pair2


@relay
def total(n: Numbers) -> Int:
    match n:
        case Empty():
            return 0
        case Single(x):
            return x
        case Pair(x, y):
            return x + y


def test_a_function_of_numbers_branches_on_how_they_were_made() -> None:
    assert agree(total, Empty()) == 0
    assert agree(total, Single(3)) == 3
    assert agree(total, Pair(5, 6)) == 11


@relay
def totals() -> tuple[Int, Int, Int]:
    return total(Empty()), total(Single(3)), total(Pair(5, 6))


def test_values_are_made_in_programs_too() -> None:
    assert agree(totals) == (0, 3, 11)


@relay
def total_of_numbers2() -> Int:
    return total(Empty2())


def test_data_types_that_look_alike_are_different() -> None:
    with pytest.raises(CheckError, match=r"`total` takes Numbers as `n`[^=]*this is Numbers2"):
        total_of_numbers2.check()
    with pytest.raises(RunError, match="`n` is Numbers"):
        total(Empty2())


@relay
def inc_scalar(opt: Optional[Int]) -> Int:  # noqa: UP045  as it is often written
    match opt:
        case None:
            return 1
        case s:
            return s + 1


@relay
def main() -> tuple[Int, Int]:
    one: Int | None = 1
    two = inc_scalar(one)
    z = inc_scalar(None)
    return two, z


def test_an_optional_holds_a_value_or_none() -> None:
    assert agree(main) == (2, 1)
    assert agree(inc_scalar, 1) == 2
    assert agree(inc_scalar, None) == 1


@relay
def bigger() -> Int:
    big: Tensor[Float, (10, 10)] | None = relay.full((10, 10), 1.0)
    return inc_scalar(big)


def test_optionals_of_different_types_are_different() -> None:
    with pytest.raises(CheckError) as caught:
        bigger.check()
    text = str(caught.value)
    assert "`inc_scalar` takes Int | None as `opt`" in text
    assert "`big` is Tensor[Float, (10, 10)] | None" in text
    with pytest.raises(RunError):
        inc_scalar(torch.ones(10, 10))


# The same, with an optional type of the user's own.


@dataclass(frozen=True)
class Nothing:
    pass


@dataclass(frozen=True)
class Just(Generic[A]):
    value: A


Maybe = Nothing | Just[A]


@relay
def inc_maybe(opt: Maybe[Int]) -> Int:
    match opt:
        case Nothing():
            return 1
        case Just(s):
            return s + 1


@relay
def main_maybe() -> tuple[Int, Int, Maybe[Tensor[Float, (2, 2)]]]:
    big = Just(relay.full((2, 2), 1.0))
    return inc_maybe(Just(1)), inc_maybe(Nothing()), big


@relay
def bigger_maybe() -> Int:
    return inc_maybe(Just(relay.full((10, 10), 1.0)))


def test_type_arguments_are_inferred_for_each_instance() -> None:
    assert agree(main_maybe) == (2, 1, Just([[1.0, 1.0]] * 2))
    with pytest.raises(CheckError, match=r"Maybe\[Tensor\[Float, \(10, 10\)\]\]"):
        bigger_maybe.check()


# Recursion.


@relay
def list_sum(xs: List[Int]) -> Int:
    match xs:
        case Nil():
            return 0
        case Cons(h, t):
            return h + list_sum(t)


def test_a_list_is_summed_by_recursion() -> None:
    assert agree(list_sum, []) == 0
    assert agree(list_sum, [1, 2, 3]) == 6
    assert agree(list_sum, numbers := list(range(5000))) == sum(numbers)


# Patterns.


@relay
def first(xs: List[A]) -> A | None:
    match xs:
        case Nil():
            return None
        case Cons(h, _):  # the rest is not used
            return h


def test_a_wildcard_ignores_what_is_not_used() -> None:
    assert agree(first, [4, 5]) == 4
    assert agree(first, []) is None
    assert agree(first, [[1, 2]]) == [1, 2]


@relay
def second_opt(xss: List[A] | None) -> A | None:
    match xss:
        case Cons(_, Cons(s, _)):
            return s
        case _:
            return None


@relay
def second_maybe(xss: Maybe[List[A]]) -> Maybe[A]:
    match xss:
        case Just(Cons(_, Cons(s, _))):
            return Just(s)
        case _:
            return Nothing()


def test_patterns_nest_in_patterns() -> None:
    assert agree(second_opt, [1]) is None
    assert agree(second_opt, [1, 2]) == 2
    assert agree(second_opt, []) is None
    assert agree(second_opt, None) is None
    assert agree(second_maybe, Just([1])) == Nothing()
    assert agree(second_maybe, Just([1, 2])) == Just(2)
    assert agree(second_maybe, Just([])) == Nothing()
    assert agree(second_maybe, Nothing()) == Nothing()


@relay
def match_order_beware(xs: List[A]) -> List[A]:
    match xs:
        case v if True:  # Python itself refuses an irrefutable case before others
            return v
        case Cons(h, t):
            return Cons(h, match_order_beware(t))
        case Nil():
            return Nil()


def test_the_first_pattern_that_matches_wins() -> None:
    assert agree(match_order_beware, [1, 2]) == [1, 2]
    assert agree(match_order_beware, []) == []
