"""Whole values compared and written, at any depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import relay
from pyrelay.prelude.values import List


@dataclass(frozen=True)
class Cons:
    head: Any
    tail: Any


@dataclass(frozen=True)
class Other:
    head: Any
    tail: Any


@dataclass(frozen=True)
class Own:
    x: int

    def __repr__(self) -> str:
        return "<own>"


def deep(last: float) -> Any:
    found: Any = torch.tensor(last)
    for number in range(20_000):
        found = Cons(number, found)
    return found


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        (Cons(torch.ones(2), None), Cons(torch.ones(2), None), True),
        (Cons(torch.ones(2), None), Cons(torch.ones(3), None), False),
        (Cons(torch.ones(2), None), Cons(torch.ones(2).double(), None), False),
        (Cons(1, 2), Other(1, 2), False),
        (Cons(1, (2, [3.0])), Cons(1, (2, [3.0])), True),
        (Cons(1, (2, [3.0])), Cons(1, (2, [4.0])), False),
        (Cons(1, None), Cons(torch.tensor(1), None), True),
        (Cons(1, None), Cons(1, 2), False),
        (Cons(float("nan"), 1), Cons(float("nan"), 1), False),
        (List.of([1, 2]), List.of([1, 2]), True),
        (List.of([1, 2]), List.of([1, 3]), False),
        (deep(1.0), deep(1.0), True),
        (deep(1.0), deep(2.0), False),
    ],
    ids=range(13),
)
def test_equality_is_of_whole_values(left: Any, right: Any, is_equal: bool) -> None:
    assert relay.equal(left, right) is is_equal


def test_shared_parts_are_compared_once() -> None:
    left: Any = Cons(1, 2)
    right: Any = Cons(1, 2)
    for _ in range(100):
        left, right = Cons(left, left), Cons(right, right)
    assert relay.equal(left, right)


def test_tensors_alone_are_compared_element_by_element() -> None:
    assert relay.equal(torch.tensor([1, 2]), torch.tensor([1, 3])).tolist() == [True, False]


@pytest.mark.parametrize(
    "value",
    [Cons(torch.ones(2), Own(1)), (Cons(1, ()), [2, (3,)]), List.of([Cons(1, None)]), "text"],
)
def test_values_are_written_as_python_shows_them(value: Any) -> None:
    assert relay.show(value) == repr(value)


def test_deep_values_are_written_whole() -> None:
    text = relay.show(deep(0.5))
    assert text.startswith("Cons(head=19999, tail=Cons(head=19998,")
    assert text.count("Cons") == text.count(")") - 1 == 20_000
