"""Whatever implementations do, and whatever the program, both executors run the same ones."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrelay import dispatch
from pyrelay.runtime.compile.program import Program as Stages
from tests.strategies import Program, programs
from tests.tolerances import assert_program

CPU = torch.device("cpu")
Moved = dispatch.mode("Moved")


def moved(call: dispatch.OperatorCall) -> Any:
    """Return what the operator gives, floats moved: no law of arithmetic holds of that."""
    return elsewhere(call.redispatch())


def elsewhere(value: Any) -> Any:
    match value:
        case torch.Tensor() if value.is_floating_point():
            return value * 0.75 + 0.125
        case tuple():
            return tuple(map(elsewhere, value))
        case _:
            return value


@given(programs(effects=True))
def test_a_fallback_that_moves_every_float_moves_it_alike(program: Program) -> None:
    stages = Stages.of_typed(program.module, "main")
    plain = stages.interpret(program.arguments(), CPU)
    with dispatch.fallback(Moved, moved), dispatch.include(Moved):
        expected = stages.interpret(program.arguments(), CPU)
        assert_program(stages.compiled(CPU)(*program.arguments()), expected)
    assert_program(stages.compiled(CPU)(*program.arguments()), plain)


@given(programs(), st.sets(st.sampled_from(["add", "multiply", "tanh", "where", "sum", "exp"])))
def test_implementations_of_some_operators_are_run_by_both(
    program: Program, names: set[str]
) -> None:
    stages = Stages.of_typed(program.module, "main")
    made = [dispatch.register(n, (Moved, "float"), moved, boxed=True) for n in sorted(names)]
    try:
        with dispatch.include(Moved):
            expected = stages.interpret(program.arguments(), CPU)
            assert_program(stages.compiled(CPU)(*program.arguments()), expected)
    finally:
        for registration in made:
            registration.remove()
