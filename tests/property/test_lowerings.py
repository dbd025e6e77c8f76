"""Every lowering gives what the evaluator gives, whatever the program: values and gradients."""

from __future__ import annotations

from typing import Final

from hypothesis import given, settings

from tests.property.lowerings import check, differentiated
from tests.property.test_gradients import FIRST, SECOND
from tests.strategies import Program, programs

LOWERINGS: Final = ("evaluator", "torch", "torch-regions")
"""Those that need nothing; tests/kernels/test_random.py has `triton-interpret`."""

HALF = settings(max_examples=settings().max_examples // 2)


@given(programs(effects=True))
def test_a_program_gives_the_same_by_every_lowering(program: Program) -> None:
    check(program.module, "main", program.arguments, LOWERINGS)


@given(programs(size=30, allow_control=False))
def test_straight_line_code_gives_the_same_by_every_lowering(program: Program) -> None:
    check(program.module, "main", program.arguments, LOWERINGS)


@HALF
@given(programs(differentiable=True, effects=True))
def test_a_gradient_is_the_same_by_every_lowering(program: Program) -> None:
    check(differentiated(program, FIRST), "derived", program.arguments, LOWERINGS)


@HALF
@given(programs(5, differentiable=True))
def test_a_second_gradient_is_the_same_by_every_lowering(program: Program) -> None:
    check(differentiated(program, SECOND), "derived", program.arguments, LOWERINGS)
