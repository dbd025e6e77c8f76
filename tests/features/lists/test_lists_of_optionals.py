"""A list in which None is written beside values holds optionals, at any depth of displays."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Float, relay
from pyrelay.prelude import List


@relay
def values(x: Float):
    return [x, None]


@relay
def lists(x: Float):
    return [[x, None], [None], []]


@relay
def pairs(x: Float):
    return [(1, x), (2, None)]


@relay
def pairs_none_first(x: Float):
    return [(1, None), (2, x)]


@relay
def nested(x: Float):
    return [(1, (None, x)), (2, (x, None)), (3, (None, None))]


@relay
def lists_in_pairs(x: Float):
    return [(1, [None]), (2, [x, x]), (3, [])]


@relay
def optional_lists(x: Float):
    return [None, [None, x], []]


@relay
def appended(x: Float):
    xs = [x]
    xs.append(None)
    return xs


@relay
def appended_pairs(x: Float):
    xs = [(1, None)]
    xs.append((2, x))
    return xs


@relay
def appended_lists(x: Float):
    xs = []
    for _ in range(2):
        xs.append([x])
        xs.append([None, x])
    return xs


@relay
def annotated(x: Float):
    maybe: List[Float | None] = [x]
    return [None, x] + maybe  # noqa: RUF005  the other form is in the next program


@relay
def annotated_comprehension(x: Float):
    maybe: List[Float | None] = [x * i for i in range(2)]
    return [None, *maybe]


@relay
def chosen(x: Float):
    return x if x > 5.0 else None


@relay
def chosen_and_appended(x: Float):
    xs = []
    for i in range(3):
        xs.append(x if i > 1 else None)
    return xs


@relay
def compared(x: Float):
    y = x if x > 0.0 else None
    return relay.equal(y, x)


PROGRAMS: list[tuple[Any, Any]] = [
    (values, [2.0, None]),
    (lists, [[2.0, None], [None], []]),
    (pairs, [(1, 2.0), (2, None)]),
    (pairs_none_first, [(1, None), (2, 2.0)]),
    (nested, [(1, (None, 2.0)), (2, (2.0, None)), (3, (None, None))]),
    (lists_in_pairs, [(1, [None]), (2, [2.0, 2.0]), (3, [])]),
    (optional_lists, [None, [None, 2.0], []]),
    (appended, [2.0, None]),
    (appended_pairs, [(1, None), (2, 2.0)]),
    (appended_lists, [[2.0], [None, 2.0], [2.0], [None, 2.0]]),
    (annotated, [None, 2.0, 2.0]),
    (annotated_comprehension, [None, 0.0, 2.0]),
    (chosen, None),
    (chosen_and_appended, [None, None, 2.0]),
    (compared, True),
]


def plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.item()
    if isinstance(value, list | List):
        return [plain(v) for v in value]
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


@pytest.mark.parametrize(("function", "expected"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_what_is_none_in_one_place_is_optional_in_all(function: Any, expected: Any) -> None:
    x = torch.tensor(2.0)
    assert plain(function(x)) == plain(function.interpret(x)) == expected


@relay
def total(x: Float) -> Float:
    found = 0.0
    for weight, value in [(1.0, x), (2.0, None), (3.0, x)]:
        if value is not None:
            found += weight * value
    return found


def test_gradients_go_through_what_is_there() -> None:
    assert relay.grad(total)(torch.tensor(2.0)).item() == 4.0
