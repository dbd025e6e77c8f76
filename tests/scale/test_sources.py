"""Recursions and loops of any length run and are differentiated, as users write and call them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pyrelay import relay
from tests.scale import sources
from tests.scale.sources import Jet, iterated

START = 0.7
FULL = pytest.mark.slow

CASES: dict[str, tuple[Any, Callable[[int], tuple[int, ...]], int]] = {
    "recursion": (sources.recursion, lambda n: (n,), 20_000),
    "mutual recursion": (sources.even, lambda n: (n,), 20_000),
    "recursion of a local function": (sources.local_recursion, lambda n: (n,), 20_000),
    "loop": (sources.loop, lambda n: (n,), 100_000),
    "recursion in a loop": (sources.recursion_in_loop, lambda n: (5, n // 5), 100_000),
    "short recursions in a long loop": (sources.recursion_in_loop, lambda n: (n // 5, 5), 100_000),
    "loop in a recursion": (sources.loop_in_recursion, lambda n: (n // 5, 5), 100_000),
    "long loops in a recursion": (sources.loop_in_recursion, lambda n: (5, n // 5), 100_000),
}
QUICK = 3000


def start() -> torch.Tensor:
    return torch.tensor(START, dtype=torch.float64)


def check(got: torch.Tensor, expected: float) -> None:
    torch.testing.assert_close(got.item(), expected, rtol=1e-9, atol=1e-12)


def both_lengths() -> list[Any]:
    quick = [pytest.param(name, QUICK, id=name) for name in CASES]
    full = [pytest.param(n, c[2], id=f"{n}, {c[2]} steps", marks=FULL) for n, c in CASES.items()]
    return [*quick, *full]


@pytest.mark.parametrize(("name", "steps"), both_lengths())
def test_a_function_and_its_derivatives_are_those_of_its_steps(name: str, steps: int) -> None:
    function, arguments, _ = CASES[name]
    expected = iterated(START, steps)
    first = relay.grad(function, wrt="x")
    second = relay.grad(first, wrt="x")
    given = arguments(steps)
    check(function(start(), *given), expected.value)
    check(first(start(), *given), expected.first)
    check(second(start(), *given), expected.second)


@pytest.mark.parametrize(
    ("function", "steps"),
    [(sources.slope, 20_000), (sources.loop_slope, 20_000)],
    ids=["recursion", "loop"],
)
def test_a_gradient_that_a_program_takes_is_differentiated(function: Any, steps: int) -> None:
    expected = iterated(START, steps)
    check(function(start(), steps), expected.first)
    check(relay.grad(function, wrt="x")(start(), steps), expected.second)


def test_a_deep_call_joins_autograd() -> None:
    x = start().requires_grad_()
    sources.recursion(x, 20_000).backward()
    assert x.grad is not None
    check(x.grad, iterated(START, 20_000).first)


def test_a_loop_over_a_vector_is_differentiated_in_each_element() -> None:
    x = torch.tensor([0.7, -1.2, 2.5], dtype=torch.float64)
    expected = [iterated(value, 5000) for value in x.tolist()]
    check(sources.vector_loop(x, 5000), sum(e.value for e in expected))
    found = relay.grad(sources.vector_loop, wrt="x")(x, 5000)
    for got, jet in zip(found, expected, strict=True):
        check(got, jet.first)


@pytest.mark.slow
def test_a_million_steps_run_and_are_differentiated() -> None:
    expected = iterated(START, 1_000_000)
    check(sources.loop(start(), 1_000_000), expected.value)
    check(relay.grad(sources.loop, wrt="x")(start(), 1_000_000), expected.first)


class Count(TorchDispatchMode):
    """Counts the operators that torch runs."""

    def __init__(self) -> None:
        super().__init__()
        self.operators = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operators += 1
        return func(*args, **(kwargs or {}))


def operators(function: Any, *args: Any) -> int:
    """Return how many operators a call runs, compiling and making its constants apart."""
    with Count() as count:
        function(start(), *(0 for _ in args))
        before = count.operators
        function(start(), *args)
    return count.operators - before


@pytest.mark.host("what torch runs is counted")
@pytest.mark.parametrize("name", CASES)
def test_operators_grow_with_the_steps_at_both_orders(name: str) -> None:
    function, arguments, _ = CASES[name]
    first = relay.grad(function, wrt="x")
    second = relay.grad(first, wrt="x")
    work = {
        f: [operators(f, *arguments(steps)) for steps in (200, 400, 600)]
        for f in (function, first, second)
    }
    for small, middle, large in work.values():
        assert large - middle == middle - small
    plain, once, twice = (counts[-1] for counts in work.values())
    assert once < 5 * plain
    assert twice < 15 * plain


def peak(function: Any, *args: Any) -> int:
    """Return how many bytes of Python objects a call holds at most; each tensor is one."""
    function(start(), *(0 for _ in args))
    x = start()
    tracemalloc.start()
    try:
        function(x, *args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.host("what host code holds is counted")
def test_a_loop_holds_no_more_when_it_is_longer() -> None:
    assert peak(sources.loop, 4000) < peak(sources.loop, 100) + 5_000


@pytest.mark.host("what host code holds is counted")
def test_a_gradient_holds_a_few_values_per_step() -> None:
    for name in ("loop", "recursion"):
        function, arguments, _ = CASES[name]
        gradient = relay.grad(function, wrt="x")
        per_step = (peak(gradient, *arguments(3000)) - peak(gradient, *arguments(1000))) / 2000
        assert per_step < 2000


def test_what_is_expected_of_the_steps_is_what_torch_finds() -> None:
    assert iterated(START, 0) == Jet(START, 1.0, 0.0)
    x = start().requires_grad_()
    y = x
    for _ in range(50):
        y = y + torch.sin(y) * 1e-4
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    torch.testing.assert_close(iterated(START, 50), Jet(y.item(), first.item(), second.item()))
