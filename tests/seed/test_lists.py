"""The introduction to algebraic data types, from Python: maps and folds over lists, and what is
written with them."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from pyrelay import Fn, Int, relay
from pyrelay.prelude import Cons, List, Nil

from .values import agree

A = TypeVar("A")
B = TypeVar("B")


@relay
def map_(f: Fn[[A], B], xs: List[A]) -> List[B]:
    match xs:
        case Nil():
            return Nil()
        case Cons(h, t):
            return Cons(f(h), map_(f, t))


@relay
def foldl(f: Fn[[B, A], B], z: B, xs: List[A]) -> B:
    match xs:
        case Nil():
            return z
        case Cons(h, t):
            return foldl(f, f(z, h), t)


@relay
def foldr(f: Fn[[A, B], B], z: B, xs: List[A]) -> B:
    match xs:
        case Nil():
            return z
        case Cons(h, t):
            return f(h, foldr(f, z, t))


@relay
def double(xs: List[Int]) -> List[Int]:
    match xs:
        case Nil():
            return Nil()
        case Cons(h, t):
            return Cons(h * 2, double(t))


@relay
def double_by_map(xs: List[Int]) -> List[Int]:
    return map_(lambda i: i * 2, xs)


@pytest.mark.parametrize("function", [double, double_by_map])
def test_all_elements_are_doubled(function: Any) -> None:
    assert agree(function, []) == []
    assert agree(function, [1, 2, 3]) == [2, 4, 6]


@relay
def concat(xs: List[A], ys: List[A]) -> List[A]:
    match xs:
        case Nil():
            return ys
        case Cons(h, t):
            return Cons(h, concat(t, ys))


@relay
def concat_by_foldr(xs: List[A], ys: List[A]) -> List[A]:
    return foldr(lambda h, z: Cons(h, z), ys, xs)


@relay
def concat_by_a_constructor(xs: List[A], ys: List[A]) -> List[A]:
    return foldr(Cons, ys, xs)


@pytest.mark.parametrize("function", [concat, concat_by_foldr, concat_by_a_constructor])
def test_two_lists_become_one(function: Any) -> None:
    assert agree(function, [1, 2], [3, 4]) == [1, 2, 3, 4]
    assert agree(function, [1, 2], [3]) == [1, 2, 3]
    assert agree(function, [[1], []], [[2]]) == [[1], [], [2]]


@relay
def flatten(xss: List[List[A]]) -> List[A]:
    match xss:
        case Cons(h, t):
            return concat(h, flatten(t))
        case Nil():
            return Nil()


@relay
def flatten_by_foldl(xss: List[List[A]]) -> List[A]:
    return foldl(concat, Nil(), xss)


@pytest.mark.parametrize("function", [flatten, flatten_by_foldl])
def test_a_list_of_lists_is_flattened(function: Any) -> None:
    assert agree(function, [[1, 2, 3], [4, 5, 6]]) == [1, 2, 3, 4, 5, 6]
    assert agree(function, [[1], [2, 3], [4]]) == [1, 2, 3, 4]


@relay
def orders(xs: List[Int]) -> tuple[Int, Int, List[Int]]:
    left = foldl(lambda z, h: z * 10 + h, 0, xs)
    right = foldr(lambda h, z: z * 10 + h, 0, xs)
    return left, right, foldl(lambda z, h: Cons(h, z), Nil(), xs)


def test_folds_go_from_the_left_and_from_the_right() -> None:
    assert agree(orders, [1, 2, 3]) == (123, 321, [3, 2, 1])


@relay
def several(xs: List[Int], yss: List[List[Int]]):
    def same(x):
        return x

    first = lambda x, _: x  # noqa: E731
    return map_(same, xs), map_(same, yss), foldl(first, 0, yss), foldl(first, Nil(), xs)


def test_a_local_function_is_passed_at_several_types() -> None:
    assert agree(several, [1, 2], [[3], []]) == ([1, 2], [[3], []], 0, [])


@relay
def increment(x: Int) -> Int:
    return x + 1


def test_functions_are_passed_from_scripts() -> None:
    assert agree(map_, increment, [1, 2]) == [2, 3]
    assert agree(foldr, Cons, List.of([4]), [1, 2]) == [1, 2, 4]
