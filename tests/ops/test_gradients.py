"""Every operator's gradient rule, on every one of its samples in double precision."""

from __future__ import annotations

import pytest

from pyrelay.ir.op import Clash, Effect, NoGradient, Op
from pyrelay.operators.table import ALL
from tests.ops.checks import assert_equal, samples
from tests.ops.derivatives import (
    Derivative,
    assert_is_slope,
    random_like,
    results_of,
    torch_gradient,
)
from tests.ops.materials import shape_names
from tests.ops.programs import differentiate, float_parameters

every_operator = pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)
differentiable = pytest.mark.parametrize(
    "op", [op for op in ALL if not isinstance(op.grad, NoGradient)], ids=lambda op: op.name
)


def cases(op: Op, *, smooth: bool) -> list[Derivative]:
    """Return the samples that a derivative is taken on; only the smooth ones if asked."""
    found = [Derivative(op, s) for s in samples(op) if s.smooth or not smooth]
    return [case for case in found if case.exists]


@every_operator
def test_the_gradient_is_that_of_torch(op: Op) -> None:
    if op.effect & Effect.RANDOM:
        pytest.skip("draws anew")
    for case in cases(op, smooth=False):
        assert_equal(case.gradient(case.args), torch_gradient(case), rtol=1e-7, atol=1e-9)


@differentiable
def test_the_gradient_is_the_slope_of_the_value(op: Op) -> None:
    for case in cases(op, smooth=True):
        if not case.is_precise:
            continue
        at = [case.inputs.index(v) for v in case.by]
        slope = case.gradient(case.args)
        assert_is_slope(slope, case.value, case.seeds, case.args, at)


@differentiable
def test_the_second_gradient_is_the_slope_of_the_first(op: Op) -> None:
    for case in cases(op, smooth=True):
        by = case.without_buffers(float_parameters(case.program))
        weights = random_like(case.gradient(case.args), seed=3)
        second = differentiate(case.program, case.cotangents, by)
        args = [*case.args, *weights]
        at = [case.program.params.index(v) for v in by]
        slope = results_of(case.program, second, args)
        assert_is_slope(slope, case.gradient, weights, args, at)


@differentiable
def test_the_gradient_is_the_same_for_named_dims(op: Op) -> None:
    for sample in samples(op):
        try:
            named = Derivative(op, sample, shape_names(sample))
        except Clash:
            continue  # some operators need a number where others take a name
        case = Derivative(op, sample)
        if case.exists:
            actual, expected = named.gradient(case.args), case.gradient(case.args)
            assert_equal(actual, expected, rtol=1e-12, atol=1e-12)


@differentiable
def test_a_rule_that_exists_is_tried(op: Op) -> None:
    found = cases(op, smooth=False)
    assert any(case.sample.smooth or not case.is_precise for case in found), op.name
