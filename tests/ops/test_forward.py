"""Every operator in forward mode, on every one of its samples in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.expr import (
    Binding,
    Call,
    Differentiation,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    Rule,
    Transform,
    Var,
)
from pyrelay.ir.module import Module
from pyrelay.ir.op import Effect, Linear, NoGradient, Op
from pyrelay.ir.types import FnType, TupleType
from pyrelay.operators.builder import Value
from pyrelay.operators.table import ALL
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile.evaluator import evaluate
from tests.ops.checks import assert_equal, samples
from tests.ops.derivatives import STEP, Derivative, dot, moved, random_like
from tests.ops.programs import Program, call_program, float_parts

DIFFERENTIABLE = [
    op for op in ALL if not isinstance(op.grad, NoGradient) and not op.effect & Effect.RANDOM
]
differentiable = pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)


TINY = 1e-30
"""A step so small that what it changes is exact: no difference of close numbers is taken."""

ANALYTIC = {"divide", "exp", "log1p", "tanh", "acosh", "matmul", "solve", "det", "set_at", "cat"}
"""Some of the operators that a complex step must reach."""

NOT_ANALYTIC = {
    *("power", "tanh_grad", "sigmoid_grad", "adam_step", "cast", "bincount"),
    *("slogdet", "cholesky", "eigh", "qr", "svd", "pinv"),
    *("conv1d", "conv2d", "conv3d", "conv_transpose2d", "batch_norm_with_statistics"),
}
"""Operators whose bodies in torch conjugate or drop an imaginary part, or round it away."""


def cases(op: Op, *, smooth: bool = False) -> list[Derivative]:
    found = [Derivative(op, s) for s in samples(op) if s.smooth or not smooth]
    return [case for case in found if case.exists]


def pushed(program: Program, results: Sequence[Value], by: Sequence[Var]) -> Module:
    """Return a module whose `main` is the derivative of some values of a program, by some of its
    parameters, in forward mode."""
    builder = program.builder
    before = len(builder.bindings)
    whole = builder.tuple(results)
    body = builder.block(whole)
    del builder.bindings[before:]
    params = tuple(program.params)
    types = tuple(p.ty for p in params if p.ty is not None)
    ty = FnType(types, whole.ty)
    function = Function(params, body, whole.ty, ty=ty, span=NOWHERE)
    wrt = tuple(params.index(v) for v in by)
    primals = Var("primals", TupleType(types), span=NOWHERE)
    tangents = Var("tangents", TupleType(tuple(types[i] for i in wrt)), span=NOWHERE)
    result = TupleType((whole.ty, whole.ty))
    made = FnType((TupleType(types), TupleType(tuple(types[i] for i in wrt))), result)
    push = Var("push", made, span=NOWHERE)
    mention = GlobalVar("f", ty, span=NOWHERE)
    transform = Transform(
        Rule.JVP, mention, Differentiation(wrt, single=False), ty=made, span=NOWHERE
    )
    call = Call(push, (primals, tangents), ty=result, span=NOWHERE)
    block = LetBlock((Binding(push, transform),), call, Flavour.PURE, ty=result, span=NOWHERE)
    main = Function((primals, tangents), block, result, ty=made, span=NOWHERE)
    return expand_transforms(Module({"f": function, "main": main}, {}))


def of_call(case: Derivative) -> Module:
    """Return the derivative of the call itself in forward mode."""
    program, result = call_program(case.op, case.sample, {})
    by = [program.params[case.inputs.index(v)] for v in case.by]
    return pushed(program, float_parts(result[0] if case.buffers else result), by)


def tangents_of(module: Module, args: Sequence[Any], along: Sequence[torch.Tensor]) -> list[Any]:
    _, tangents = evaluate(module, "main", [tuple(args), tuple(along)])
    return [torch.as_tensor(t, dtype=torch.float64) for t in tangents]


def test_what_an_operator_is_linear_in_are_operands_of_it() -> None:
    for op in ALL:
        if isinstance(op.push, Linear):
            names = {p.name for p in op.operands}
            assert {n for group in op.push.groups for n in group} <= names, op.name
            assert op.push.added is None or op.push.added in names, op.name


@differentiable
def test_the_tangent_is_the_transpose_of_the_gradient(op: Op) -> None:
    for case in cases(op):
        along = random_like([case.values[case.inputs.index(v)] for v in case.by], seed=7)
        tangents = tangents_of(of_call(case), case.values, along)
        left, right = dot(case.seeds, tangents), dot(case.gradient(case.args), along)
        if case.is_precise:
            assert left == pytest.approx(right, rel=1e-9, abs=1e-9, nan_ok=True), case.sample


@differentiable
def test_the_tangent_is_the_slope_of_the_value(op: Op) -> None:
    for case in cases(op, smooth=True):
        if not case.is_precise:
            continue
        at = [case.inputs.index(v) for v in case.by]
        along = random_like([case.values[i] for i in at], seed=7)
        tangents = tangents_of(of_call(case), case.values, along)
        ahead = case.value([*moved(case.values, at, along, STEP), *case.seeds])
        behind = case.value([*moved(case.values, at, along, -STEP), *case.seeds])
        slope = [(a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]
        assert_equal(tangents, slope, rtol=1e-3, atol=1e-6)


def imaginary(case: Derivative, along: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    """Return the imaginary parts of the results where the operands have `along` as theirs, by a
    tiny step; None where torch has no complex numbers for the operator."""
    values: list[Any] = list(case.values)
    for var, direction in zip(case.by, along, strict=True):
        place = case.inputs.index(var)
        values[place] = torch.complex(values[place], TINY * direction)
    program, result = call_program(case.op, case.sample, {})
    try:
        found = program.run_in_torch(result, values)
    except (RuntimeError, UserWarning):  # it casts to real numbers
        return None
    parts = [found] if isinstance(found, torch.Tensor) else list(found)
    parts = [p for p in parts if isinstance(p, torch.Tensor) and p.dtype != torch.int64]
    return [p.imag / TINY for p in parts] if all(p.is_complex() for p in parts) else None


@pytest.mark.parametrize(
    "op", [op for op in DIFFERENTIABLE if op.name not in NOT_ANALYTIC], ids=lambda op: op.name
)
def test_the_tangent_is_the_complex_step(op: Op) -> None:
    checked = 0
    for case in cases(op, smooth=True):
        along = random_like([case.values[case.inputs.index(v)] for v in case.by], seed=7)
        expected = imaginary(case, along) if case.is_precise else None
        if expected is not None:
            tangents = tangents_of(of_call(case), case.values, along)
            assert_equal(tangents, expected, rtol=1e-10, atol=1e-11)
            checked += 1
    assert checked or op.name not in ANALYTIC
    if not checked:
        pytest.skip("torch has no complex numbers for it")


@differentiable
def test_the_tangent_of_the_gradient_is_its_slope(op: Op) -> None:
    for case in cases(op, smooth=True):
        if not case.is_precise:
            continue
        at = [case.inputs.index(v) for v in case.by]
        along = random_like([case.values[i] for i in at], seed=7)
        module = pushed(case.program, case.cotangents, case.by)
        tangents = tangents_of(module, case.args, along)
        ahead = case.gradient(moved(case.args, at, along, STEP))
        behind = case.gradient(moved(case.args, at, along, -STEP))
        slope = [(a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]
        assert_equal(tangents, slope, rtol=1e-4, atol=1e-5)
