"""Names that start from an integer literal and come to carry floats: the function run by Python is
the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import Bool, CheckError, Dim, Float, Int, Tensor, relay
from pyrelay import float64 as double
from pyrelay import int32 as short
from pyrelay.prelude import List, foldl

N = Dim("N")
Row = Tensor[Float, (N,)]


@dataclass(frozen=True)
class Pair:
    total: Float
    count: Int


def nested_loops(x: Row):
    t = 0
    for v in x:
        for w in x:
            t += v * w
    return t


def loop_over_a_list(xs: List[Float]):
    t = 0
    for v in xs:
        t += v
    return t


def lists_in_a_list(xs: List[List[Float]]):
    t = 0
    for ys in xs:
        for v in ys:
            t += v
    return t


def integer_arguments_on_the_way(xs: List[Float], n: Int):
    t = 0
    for v in xs:
        t = t + n
        t = t + v
    return t


def recursion(x: Row):
    def go(i, acc):
        if i == x.shape[0]:
            return acc
        return go(i + 1, acc + x[i])

    return go(0, 0)


def mutual_recursion(x: Row):
    def even(i, acc):
        if i == x.shape[0]:
            return acc
        return odd(i + 1, acc + x[i])

    def odd(i, acc):
        if i == x.shape[0]:
            return acc
        return even(i + 1, acc - x[i])

    return even(0, 0)


def while_in_loops(x: Row):
    t = 1
    for v in x:
        for _ in range(2):
            while t < 2:
                t = t * (1 + v)
    return t


def branches(x: Row, p: Bool):
    t = 0
    for v in x:
        if p:
            t = v
        elif v > 0.3:
            t = t - v
    return t


def optional_total(x: Row):
    best = None
    for v in x:
        best = 0 if best is None else best + v
    return 0.0 if best is None else best


def tuples(x: Row):
    t = (0, (0, 1))
    for v in x:
        for w in x:
            a, (b, c) = t
            t = (b + v, (a, c * w))
    return t


def fibonacci(x: Row):
    a, b = 0, 1
    for v in x:
        a, b = b, a + v
    return a, b


def list_of_totals(x: Row):
    t = 0
    totals = []
    for v in x:
        totals.append(t)
        t = t + v
    return totals[0], totals[1], totals[2]


def list_of_literals(x: Row):
    xs = [0, 0]
    for v in x:
        for w in x:
            xs = [xs[0] + v, xs[1] * w + 1]
    return xs[0], xs[1]


def closures(x: Row):
    f = lambda a: a  # noqa: E731
    for v in x:
        f = (lambda g: lambda a: g(a) + v)(f)  # noqa: B023
    return f(0)


def data(x: Row):
    p = Pair(0, 0)
    for v in x:
        p = Pair(p.total + v, p.count + 1)
    return p.total, p.count


def counters_stay_integers(x: Row):
    t = 0
    c = 0
    for v in x:
        c = c + 1
        t = c + t + v
    return t, c


def quotient_of_a_total(x: Tensor[double, (N,)]):
    t = 1
    s = 0.0
    for v in x:
        s = s + 1 / t
        t = t + v
    return t, s


def short_integers(x: Tensor[short, (N,)]):
    t = 0
    for _ in range(2):
        for v in x:
            t += v
    return t


def literal_after_an_argument(x: Float):
    b = x
    for _ in range(3):
        b = 0.5
    return b


def integer_after_an_argument(x: Float):
    b = x
    for i in range(3):
        for j in range(2):
            if i > j:
                b = 1
    return b


def half_in_a_while(x: Float):
    b = (x, 1)
    while b[1] < 3:
        b = (0.5, b[1] + 1)
    return b


def argument_in_loops(x: double):
    b = 1
    for _ in range(3):
        for _ in range(2):
            b = x
    return b


ROW = torch.tensor([0.5, 0.25, 0.125])
CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (nested_loops, (ROW,)),
    (loop_over_a_list, ([0.5, 0.25],)),
    (lists_in_a_list, ([[0.5, 0.25], [0.25]],)),
    (integer_arguments_on_the_way, ([0.5, 0.25], 3)),
    (recursion, (ROW,)),
    (mutual_recursion, (ROW,)),
    (while_in_loops, (ROW,)),
    (branches, (ROW, True)),
    (branches, (ROW, False)),
    (optional_total, (ROW,)),
    (tuples, (ROW,)),
    (fibonacci, (ROW,)),
    (list_of_totals, (ROW,)),
    (list_of_literals, (ROW,)),
    (closures, (ROW[:1],)),
    (data, (ROW,)),
    (counters_stay_integers, (ROW,)),
    (quotient_of_a_total, (ROW.double(),)),
    (short_integers, (torch.tensor([1, 2], dtype=torch.int32),)),
    (literal_after_an_argument, (1.25,)),
    (integer_after_an_argument, (1.25,)),
    (half_in_a_while, (1.25,)),
    (argument_in_loops, (1.25,)),
]


def numbers(value: Any) -> list[float]:
    """Return the numbers in a value, in order."""
    if isinstance(value, tuple):
        return [n for part in value for n in numbers(part)]
    return [float(value)]


@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda c: getattr(c, "__name__", None))
def test_a_weak_literal_takes_the_dtype_that_the_program_brings(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    compiled: Any = relay(function)
    expected = numbers(function(*args))
    assert numbers(compiled(*args)) == pytest.approx(expected, rel=1e-6)
    assert numbers(compiled.interpret(*args)) == pytest.approx(expected, rel=1e-6)


def test_what_flows_through_a_carried_literal_has_a_gradient() -> None:
    found = relay.grad(relay(nested_loops))(ROW)
    assert torch.equal(found, torch.full((3,), 2 * ROW.sum().item()))


def test_an_integer_beside_a_float_that_is_carried_keeps_its_dtype() -> None:
    total, count = relay(counters_stay_integers)(ROW)
    assert (total.dtype, count.dtype) == (torch.float32, torch.int64)


def test_folding_a_list_of_floats_from_zero_gives_floats() -> None:
    @relay
    def total(xs: List[Float]):
        return foldl(lambda a, v: a + v, 0, xs)

    assert total([0.5, 0.25]).item() == 0.75


def an_index_that_becomes_a_float(x: Row, take: Tensor[Int, (N,)]):
    t = 0
    for v in x:
        print(take[t])  # noqa: T201  a program that prints
        t += v
    return t


def an_integer_where_a_float_is_carried(x: Row, n: Int):
    t = 0
    for v in x:
        t = n if v > 0.3 else v
    return t


def an_integer_parameter(x: Row):
    def doubled(n: Int):
        return n * 2

    t = 0
    c = 0
    for v in x:
        c = doubled(t)
        t += v
    return c


@pytest.mark.parametrize(
    ("function", "codes"),
    [
        (an_index_that_becomes_a_float, {"RL205"}),
        (an_integer_where_a_float_is_carried, {"RL204"}),
        (an_integer_parameter, {"RL201"}),
    ],
    ids=lambda c: getattr(c, "__name__", None),
)
def test_a_float_where_only_an_integer_will_do_is_a_mistake(
    function: Callable[..., Any], codes: set[str]
) -> None:
    compiled: Any = relay(function)
    with pytest.raises(CheckError) as caught:
        compiled.check()
    assert {d.code for d in caught.value.diagnostics} <= codes


def test_an_integer_beside_a_name_that_becomes_a_float_is_one_too() -> None:
    def program(x: Row, n: Int):
        total, t = 0, 1
        for v in x:
            steps = n + t
            for _ in range(2):
                steps += v
            t += v
            total += steps
        return total

    def plain(x: list[float], n: int) -> float:
        total, t = 0.0, 1.0
        for v in x:
            total += n + t + 2 * v
            t += v
        return total

    assert relay(program)(ROW, 3).item() == pytest.approx(plain(ROW.tolist(), 3))


def test_the_result_of_a_recursion_that_becomes_a_float_joins_a_literal() -> None:
    @relay
    def program(p: Float, n: Int) -> Float:
        x = 1
        for _ in range(2):
            y = x * x
            for _ in range(2):
                y += relay.square(x) * abs(3037000500)
            x *= p

        def local(k: Int, a: Float):
            if k <= 0:
                return x
            return p - local(k - 1, 0.75)

        z = local(n, 0.5)
        z += (z if n > 5 else 3) * 2
        return z

    assert program(0.5, 1).item() == 6.25
