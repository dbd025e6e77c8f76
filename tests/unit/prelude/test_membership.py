"""`x in xs` and `x not in xs`: what Python gives, in both executors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
import torch

from pyrelay import Float, Int, relay
from pyrelay.ir.equality import alpha_equal
from pyrelay.prelude import List
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

T = TypeVar("T")
MODES = ("sum", "mean")


@dataclass(frozen=True)
class Point:
    x: Int
    name: str


@relay
def in_list(x: Int, xs: List[Int]) -> tuple[bool, bool]:
    return x in xs, x not in xs


@relay
def in_list_of_pairs(x: tuple[Int, str], xs: List[tuple[Int, str]]) -> bool:
    return x in xs


@relay
def in_list_of_data(x: Point, xs: List[Point]) -> bool:
    return x in xs


@relay
def in_list_of_any(x: T, xs: List[T]) -> bool:
    return x in xs


@relay
def in_tuple(x: Float) -> tuple[bool, bool]:
    return x in (1, 2.5, 4), x not in (1, 2.5, 4)


@relay
def in_tuple_of_strings(s: str) -> bool:
    return s in ("a", "b") or s in MODES


@relay
def in_string(s: str) -> tuple[bool, bool]:
    return "x" in s, s not in "abc"


@relay
def in_display(x: Float) -> bool:
    return x in [1.0, 3.0 * x - 1.0, 3.0]


@relay
def in_nothing(x: Float) -> bool:
    return x in () or x in []  # noqa: RUF060  that is the point


@relay
def chained(n: Int) -> bool:
    return 0 < n in (-1, 1, 5)


@relay
def known_before(x: Float, *, mode: str) -> Float:
    if mode in MODES:
        return relay.sum(x)
    return 2.0 * x


@relay
def chosen_terms(x: Float, skipped: List[Int]) -> Float:
    total = 0.0
    for i in range(6):
        if i in (1, 3, 5) and i not in skipped:
            total += x * x * i
    return total


CASES: list[tuple[Any, tuple[Any, ...], Any]] = [
    (in_list, (1, [2, 1]), (True, False)),
    (in_list, (3, [2, 1]), (False, True)),
    (in_list, (3, []), (False, True)),
    (in_list_of_pairs, ((1, "a"), [(1, "b"), (1, "a")]), True),
    (in_list_of_pairs, ((1, "a"), [(1, "b"), (2, "a")]), False),
    (in_list_of_data, (Point(1, "a"), [Point(2, "a"), Point(1, "a")]), True),
    (in_list_of_data, (Point(1, "a"), [Point(2, "a")]), False),
    (in_list_of_any, ("a", ["b", "a"]), True),
    (in_list_of_any, (None, []), False),
    (in_tuple, (2.5,), (True, False)),
    (in_tuple, (2.0,), (False, True)),
    (in_tuple_of_strings, ("mean",), True),
    (in_tuple_of_strings, ("c",), False),
    (in_string, ("axb",), (True, True)),
    (in_string, ("bc",), (False, False)),
    (in_display, (3.0,), True),
    (in_display, (0.5,), True),
    (in_display, (2.0,), False),
    (in_nothing, (2.0,), False),
    (chained, (1,), True),
    (chained, (-1,), False),
    (chained, (2,), False),
]


@pytest.mark.parametrize(("function", "args", "wanted"), CASES)
def test_membership_is_as_in_python(function: Any, args: tuple[Any, ...], wanted: Any) -> None:
    assert function(*args) == wanted
    assert function.interpret(*args) == wanted


def test_static_values_are_searched_before_the_program_runs() -> None:
    assert float(known_before(2.0, mode="sum")) == 2.0
    assert float(known_before(2.0, mode="max")) == 4.0


def test_programs_that_search_are_differentiated() -> None:
    value, found = relay.value_and_grad(chosen_terms, wrt="x")(2.0, [3])
    assert float(value) == 4.0 * (1 + 5)
    assert float(found) == 4.0 * (1 + 5)


def test_a_long_list_is_searched() -> None:
    items = list(range(20_000))
    assert in_list(19_999, items) == (True, False)
    assert in_list(-1, items) == (False, True)


def test_tensors_in_a_list_are_compared_whole() -> None:
    rows = [torch.ones(2), torch.tensor([1.0, 2.0])]
    assert in_list_of_any(torch.tensor([1.0, 2.0]), rows)
    assert not in_list_of_any(torch.tensor([2.0, 2.0]), rows)


def test_the_program_is_written_and_read() -> None:
    for function in (in_list, in_tuple, in_string):
        assert alpha_equal(parse_module(to_text(function.module)), function.module)
    assert " in s" in in_string.show("python")
