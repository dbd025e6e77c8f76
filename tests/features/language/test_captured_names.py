"""Names that functions capture and that are assigned again: refused on one path, fine on two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrelay import CheckError, Float, relay


def captured_in_the_first_branch(p: Float):
    x = p * 2.0
    if p > 1.0:

        def times(y: Float):
            return y * x

        z = times(p)
    else:
        x = 1.0
        z = 3.0
    return x + z


def captured_in_the_second_branch(p: Float):
    x = p * 2.0
    if p > 1.0:
        x = 1.0
        z = 3.0
    else:

        def times(y: Float):
            return y * x

        z = times(p)
    return x + z


def captured_where_branches_return(p: Float):
    x = p * 2.0
    if p > 1.0:
        times = lambda y: y * x  # noqa: E731
        z = times(p)
        if p > 5.0:
            return z
    else:
        x = 1.0
        z = 3.0
        if p > 0.5:
            return x
    return x + z


def captured_as_a_default(p: Float):
    x = p * 2.0

    def times(y: Float, x: Float = x):
        return y * x

    x = 1.0
    return times(p) + x


def assigned_after_a_lambda(p: Float):
    x = p * 2.0
    times = lambda y: y * x  # noqa: E731
    if p > 1.0:
        x = 3.0
    return times(x)


def assigned_after_one_of_two_lambdas(p: Float):
    x = p * 2.0
    change = (lambda y: y * x) if p > 1.0 else (lambda y: y)
    x = 3.0
    return change(x)


def assigned_after_the_branch(p: Float):
    x = p * 2.0
    z = 1.0
    if p > 1.0:

        def times(y: Float):
            return y * x

        z = times(p)
    x = 1.0
    return x + z


@pytest.mark.parametrize(
    "function",
    [
        captured_in_the_first_branch,
        captured_in_the_second_branch,
        captured_where_branches_return,
        captured_as_a_default,
    ],
)
def test_another_branch_may_assign_a_name_that_one_has_captured(
    function: Callable[..., Any],
) -> None:
    compiled = relay(function)
    for number in (0.25, 0.75, 4.0, 8.0):
        assert compiled(number) == function(number)


@pytest.mark.parametrize(
    "function",
    [assigned_after_a_lambda, assigned_after_one_of_two_lambdas, assigned_after_the_branch],
)
def test_a_name_is_not_assigned_again_where_a_function_with_a_name_has_captured_it(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(CheckError, match="`x` is assigned again after a function has captured it"):
        relay(function).check()
