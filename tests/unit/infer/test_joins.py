"""What comes from one of several places: numbers that differ, optionals, and effects on the way."""

from __future__ import annotations

import pytest

from pyrelay import Float, Int, RunError, options, relay
from pyrelay.prelude import List


@relay
def kept_beside_a_literal(xs: List[Float]):
    y = 1
    scale = 1.5
    for _ in xs:
        if len(xs) == 10:
            y = 7
        else:
            scale *= 2.0
    return y, scale


@relay
def kept_in_a_nested_pair(xs: List[Float]):
    y = 1
    pair = (2, 1.5)
    for x in xs:
        if x > 10.0:
            y = 7
            pair = (3, x)
    return y, pair


@relay
def weighted(rows: List[List[Float]], n: Int):
    total = 0.0
    for row in rows:
        for x in row:
            total += (x if n > 0 else 2) * n
    return total


@relay
def or_zero(value: Float | None) -> Float:
    return 0.0 if value is None else value


@relay
def largest_of_display(p: Float):
    best = 0.0
    for x in [1.0, 2.0, p]:
        if x > best:
            best = or_zero(x)
    return best


@relay
def largest_of_grown(p: Float):
    xs = []
    xs.append(p)
    best = None
    for x in xs:
        if best is None or x > best:
            best = or_zero(x)
    return best


@relay
def fails_and_has_none(xs: List[Float]) -> Float | None:
    assert len(xs) > 0, "no elements"
    return None


@pytest.mark.parametrize("lowering", ["auto", "evaluator"])
def test_a_literal_in_one_branch_leaves_a_carried_number_alone(lowering: str) -> None:
    with options(lowering=lowering):
        assert kept_beside_a_literal([1.0, 2.0, 3.0]) == (1, 12.0)
        assert kept_beside_a_literal([1.0] * 10) == (7, 1.5)
        assert kept_in_a_nested_pair([1.0, 2.0]) == (1, (2, 1.5))
        assert kept_in_a_nested_pair([1.0, 20.0]) == (7, (3, 20.0))


def test_an_element_of_a_loop_gives_a_literal_beside_it_its_dtype() -> None:
    assert weighted([[1.5, 2.0]], 2) == 7.0
    assert weighted([[1.5]], -1) == -2.0


def test_an_element_passed_for_an_optional_is_no_optional_itself() -> None:
    assert largest_of_display(5.0) == 5.0
    assert largest_of_grown(3.0) == 3.0


@pytest.mark.parametrize("lowering", ["auto", "evaluator"])
def test_what_fails_before_none_fails_where_an_optional_is_returned(lowering: str) -> None:
    with options(lowering=lowering):
        assert fails_and_has_none([1.0]) is None
        with pytest.raises(RunError, match="no elements"):
            fails_and_has_none([])
