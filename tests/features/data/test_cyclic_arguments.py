"""Arguments that contain themselves are refused, by whatever way they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
import torch

from pyrelay import Float, RunError, relay
from pyrelay.prelude import List

T = TypeVar("T")


@dataclass(frozen=True)
class Node:
    value: Float
    children: List[Node]


@relay
def total(node: Node) -> Float:
    found = node.value
    for child in node.children:
        found += total(child)
    return found


@relay
def count(rows: List[List[Float]]) -> int:
    return len(rows)


@relay
def scaled(rows: List[T], by: Float) -> Float:
    return by * len(rows)


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def test_a_list_in_data_that_contains_itself_is_refused() -> None:
    children: list[Node] = []
    node = Node(torch.tensor(1.0), children)
    children.append(node)
    for call in (total, total.interpret, relay.grad(total)):
        with pytest.raises(RunError) as caught:
            call(node)
        assert caught.value.codes == ("RL556",)


def test_a_list_that_contains_itself_does_not_fit_lists_of_lists() -> None:
    with pytest.raises(RunError, match=r"got list\[list") as caught:
        count(endless())
    assert caught.value.codes == ("RL550",)


def test_a_list_that_contains_itself_is_refused_where_any_elements_are_taken() -> None:
    with pytest.raises(RunError):
        relay.grad(scaled, wrt="by")([1.0, endless()], 1.0)
    assert relay.grad(scaled, wrt="by")([1.0, 2.0], 1.0) == 2.0
