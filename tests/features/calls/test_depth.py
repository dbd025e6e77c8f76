"""Recursion that does not end is stopped, at the user's call; a debugger's quit is let through."""

from __future__ import annotations

from bdb import BdbQuit
from typing import Any

import pytest
import torch

import pyrelay
from pyrelay import Float, Int, RunError, relay
from pyrelay.config import Options, from_environment
from pyrelay.ir.op import Effect, Sample, TensorSpec
from pyrelay.ir.rules import same_as_operand


@relay
def endless(n: Int) -> Int:
    return 1 + endless(n + 1)


@relay
def descending(x: Float, n: Int) -> Float:
    if n == 0:
        return x
    below = descending(x * 0.5, n - 1)
    return below * x


@relay
def growing(xs: list[Int]) -> Int:
    longer = xs[:]
    longer.append(1)
    return 1 + growing(longer)


@relay
def is_even(n: Int) -> bool:
    return True if n == 0 else not is_odd(n - 1)


@relay
def is_odd(n: Int) -> bool:
    return False if n == 0 else not is_even(n - 1)


@relay
def counted(n: Int) -> Int:
    total = 0
    while n > 0:
        total += 1
        n -= 1
    return total


@relay
def by_tail_calls(n: Int, total: Int) -> Int:
    return total if n == 0 else by_tail_calls(n - 1, total + 1)


def stopped(call: Any, *args: Any) -> str:
    with pyrelay.options(max_depth=2000), pytest.raises(RunError) as caught:
        call(*args)
    assert caught.value.codes == ("RL516",)
    return str(caught.value)


def test_recursion_without_an_end_names_the_function_and_its_call() -> None:
    for run in (endless, endless.interpret):
        message = stopped(run, 0)
        assert "`endless` calls itself" in message
        assert "1 + endless(n + 1)" in message
        assert "2,000 calls wait here" in message


def test_recursion_that_a_function_of_the_prelude_ends_names_the_users_function() -> None:
    for run in (growing, growing.interpret):
        with pyrelay.options(max_depth=50), pytest.raises(RunError) as raised:
            run([1])
        message = str(raised.value)
        assert "`growing` calls itself" in message
        assert "1 + growing(longer)" in message


def test_mutual_recursion_without_an_end_is_stopped() -> None:
    assert "not is_" in stopped(is_odd, -1)


def test_a_gradient_through_recursion_without_an_end_names_the_users_function() -> None:
    message = stopped(relay.grad(descending, wrt="x"), 1.0, -1)
    assert "`descending` calls itself" in message
    assert "below = descending(x * 0.5, n - 1)" in message


def test_recursion_below_the_limit_goes_through_and_the_limit_can_be_raised() -> None:
    with pyrelay.options(max_depth=2000):
        assert descending(1.0, 1800) == 0.0
        assert descending.interpret(1.0, 1800) == 0.0
    with pyrelay.options(max_depth=6000):
        assert descending(1.0, 5500) == 0.0


def test_loops_and_tail_calls_have_no_depth() -> None:
    with pyrelay.options(max_depth=100):
        assert counted(3000) == 3000
        assert by_tail_calls(3000, 0) == 3000
        assert by_tail_calls.interpret(3000, 0) == 3000


def test_the_limit_is_a_million_unless_the_environment_sets_it() -> None:
    assert Options().max_depth == 1_000_000
    assert from_environment({"PYRELAY_MAX_DEPTH": "5000"}).max_depth == 5000
    for wrong in ("0", "-1", "many", "1e6"):
        with pytest.raises(ValueError, match="PYRELAY_MAX_DEPTH is a positive number"):
            from_environment({"PYRELAY_MAX_DEPTH": wrong})


@relay.operator(
    type_rule=same_as_operand(), samples=[Sample((TensorSpec((3,)),))], effect=Effect.IO
)
def quitting(x: torch.Tensor) -> torch.Tensor:
    """Quit as `q` does at the prompt of a debugger."""
    raise BdbQuit


@relay
def debugged(x: Float) -> Float:
    return relay.exp(quitting(x)) + 1.0


@pytest.mark.parametrize("lowering", ["auto", "torch-regions", "evaluator"])
def test_quitting_a_debugger_in_compiled_code_is_no_error_of_the_program(lowering: str) -> None:
    with pyrelay.options(lowering=lowering), pytest.raises(BdbQuit):
        debugged(1.0)
    with pytest.raises(BdbQuit):
        debugged.interpret(1.0)
