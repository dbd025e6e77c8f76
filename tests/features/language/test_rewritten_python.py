"""`a, *rest = xs`, `del xs[i]`, `:=` and the `else` of loops, each against plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, RunError, Tensor, relay

K = Dim("K")


def head_and_tail(xs: list[Float]) -> Float:
    head, *tail = xs
    return head * 100.0 + sum(tail) + len(tail)


def rebound(xs: list[Float]) -> Float:
    first, *xs = xs
    *most, last = xs
    xs.append(first)
    return first * 3.0 + last * 5.0 + sum(most) + sum(xs) * 7.0


def both_ends(xs: list[Float]) -> Float:
    first, *middle, last = [x * 2.0 for x in xs]
    middle.append(1.0)
    return first + 10.0 * last + 100.0 * sum(middle)


def of_rows(x: Tensor[Float, (5,)]) -> Float:
    a, b, *rest = x
    return a * b + rest[0] * len(rest)


def of_a_display(x: Float) -> Float:
    a, *rest = x, 2.0, 3.0
    return a + sum(rest)


def head_plus(xs: list[Float]) -> Float:
    head, *tail = xs
    total = head
    while len(tail) > 0:
        head, *tail = tail
        total = total * 2.0 + head
    return total


def of_each(rows: list[list[Float]]) -> Float:
    total = 0.0
    for first, *rest in rows:
        total = total * 3.0 + first - sum(rest)
    return total


def deleted(xs: list[Float]) -> Float:
    ys = list(xs)
    del ys[0]
    del ys[-1], ys[0]
    return sum(ys)


def deleted_in_a_loop(xs: list[Float]) -> Float:
    left = list(xs)
    total = 0.0
    while len(left) > 1:
        total += left[1]
        del left[len(left) // 2]
    return total + left[0]


def by_length(xs: list[Float]) -> Float:
    if (n := len(xs)) > 2 and n < 10:
        found = n * 2.0
    elif (m := n + 1) > 2:
        found = m * 3.0
    else:
        found = n * 1.0
    return found


def looped(xs: list[Float]) -> Float:
    total, i = 0.0, 0
    while (x := xs[i]) < 5.0:
        i += 1
        if x == 2.0:
            continue
        total += x
    return total * 10.0 + x


def in_order(x: Float) -> Float:
    return x + (x := 3.0) * x


def nested(x: Float) -> Float:
    y = (z := x * 2.0) + z
    return max(y, (t := z * 3.0)) + t


def popped_in_a_condition(xs: list[Float]) -> Float:
    stack = list(xs)
    total = 0.0
    while (top := stack.pop()) > 1.0:
        total += top
    return total + len(stack)


def without_a_break(xs: list[Float]) -> Float:
    total = 0.0
    for x in xs:
        total += x
    else:
        total *= 2.0
    return total


def searched(xs: list[Float]) -> Float:
    found = -1.0
    for x in xs:
        match int(x):
            case 7:
                found = 70.0
                break
            case _:
                pass
        if x > 1.0:
            for y in xs:
                if y == 5.0:
                    break
            else:
                found = x
                break
        elif x == 0.5:
            return 5.0
    else:
        found = -2.0
    return found


def counted_down(xs: list[Float]) -> Float:
    left = len(xs)
    while (rest := left - 1) > 0:
        left -= 1
        if rest == 2:
            break
    else:
        left += 100
    return left * 1.0


def primes(xs: list[Float]) -> Float:
    total = 0.0
    for i in range(2, 4 * len(xs)):
        for j in range(2, i):
            if i % j == 0:
                break
        else:
            total += i
    return total


def bound_by_both(xs: list[Float]) -> Float:
    for x in xs:
        if x > 2.0:
            found = x * x
            break
    else:
        x, found = -1.0, 0.5
    return found * 10.0 + x


def bound_by_a_while(xs: list[Float]) -> Float:
    i = 0
    while i < len(xs):
        if xs[i] > 2.0:
            place = i
            break
        i += 1
    else:
        return -1.0
    return place + xs[place]


def raised(xs: list[Float]) -> Float:
    for x in xs:
        if x > 0.5:
            first = x
            break
    else:
        raise ValueError("none is large")
    return first


def outer_jumps(xs: list[Float]) -> Float:
    total = 0.0
    for x in xs:
        for y in xs:
            if x * y == 6.0:
                part = y
                break
        else:
            if x == 7.0:
                break
            continue
        total = total * 10.0 + part
    else:
        total += 0.5
    return total


def returned(xs: list[Float]) -> Float:
    for x in xs:
        for y in xs:
            if x + y == 9.0:
                break
        else:
            continue
        return x * 10.0 + y
    else:
        return -1.0


def popped_until(xs: list[Float]) -> Float:
    stack = [x * 1.0 for x in xs]
    while stack.pop() > 1.0:
        if len(stack) == 1:
            last = 5.0
            break
    else:
        last = 6.0
    return last


XS = [1.0, 2.0, 3.0, 7.0]
PROGRAMS = [
    (head_and_tail, XS),
    (head_and_tail, [4.0]),
    (rebound, XS),
    (both_ends, XS),
    (both_ends, XS[:2]),
    (of_rows, torch.arange(5.0)),
    (of_a_display, 1.0),
    (head_plus, XS),
    (of_each, [XS, XS[:2], XS[1:]]),
    (deleted, XS),
    (deleted_in_a_loop, XS),
    (by_length, XS),
    (by_length, XS[:2]),
    (by_length, []),
    (looped, XS),
    (in_order, 2.0),
    (nested, 2.0),
    (popped_in_a_condition, [5.0, 0.5, 2.0, 3.0]),
    (without_a_break, XS),
    (searched, XS),
    (searched, [7.0]),
    (searched, [2.0, 5.0]),
    (searched, [0.5, 2.0]),
    (searched, []),
    (counted_down, XS),
    (counted_down, XS[:2]),
    (primes, XS),
    (bound_by_both, XS),
    (bound_by_both, [0.5]),
    (bound_by_a_while, XS),
    (bound_by_a_while, [0.5]),
    (raised, XS),
    (outer_jumps, XS),
    (outer_jumps, [2.0, 3.0]),
    (returned, XS),
    (returned, [1.0]),
    (popped_until, XS),
    (popped_until, [7.0, 1.0]),
]


@pytest.mark.parametrize(("program", "argument"), PROGRAMS)
def test_it_computes_what_python_does(program: Callable[..., Any], argument: Any) -> None:
    expected = float(program(argument))
    assert float(relay(program)(argument)) == pytest.approx(expected, rel=1e-6)


def test_gradients_go_through() -> None:
    found = relay.grad(relay(rebound))(XS)
    assert [float(x) for x in found] == [10.0, 8.0, 8.0, 12.0]
    doubled = relay.grad(relay(without_a_break))(XS)
    assert [float(x) for x in doubled] == [2.0] * 4
    squared = relay.grad(relay(bound_by_both))(XS)
    assert [float(x) for x in squared] == [0.0, 0.0, 61.0, 0.0]


@pytest.mark.parametrize(("program", "count"), [(head_and_tail, 0), (both_ends, 1)])
def test_too_few_values_are_an_error(program: Callable[..., Any], count: int) -> None:
    with pytest.raises(ValueError, match="not enough values"):
        program(XS[:count])
    with pytest.raises(RunError):
        relay(program)(XS[:count])


def test_what_is_assigned_only_sometimes_is_refused() -> None:
    with pytest.raises(CheckError, match="`:=` cannot be compiled"):

        @relay
        def sometimes(xs: list[Float]) -> Float:
            return 1.0 if len(xs) > 0 and (n := len(xs)) > 2 and n < 4 else 2.0


def test_a_list_of_the_callers_is_not_changed() -> None:
    @relay
    def removed(xs: list[Float]) -> Float:
        del xs[0]
        return sum(xs)

    with pytest.raises(CheckError, match="cannot be changed"):
        removed(XS)
