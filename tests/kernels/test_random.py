"""Kernels of random programs: each call of a kernel function gives what the evaluator gives, and
whole programs with kernels do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import torch
from hypothesis import given, settings

from pyrelay.ir.expr import Expr, Function
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.kernels.calling import NoKernel
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.kernels.fusion.fuse import fuse
from pyrelay.kernels.outlined import outlined_of
from pyrelay.lower_triton.launching.launch import KernelCall
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.runtime.compile import evaluator
from tests.kernels.running import DEVICE, run
from tests.property.lowerings import check, differentiated
from tests.property.test_gradients import FIRST, derived
from tests.strategies import Program, programs
from tests.tolerances import assert_kernel
from tests.unit.kernels.kernels import lower


def kernel_calls(
    fused: Module, entry: str, args: Sequence[Any]
) -> list[tuple[Function, list[Any]]]:
    """Return the calls of kernel functions that a program makes."""
    functions = [fused.functions[name] for name in outlined_of(fused).kernels]
    found: list[tuple[Function, list[Any]]] = []
    enter = evaluator._Evaluator._enter

    def noted(self: Any, closure: Any, given: Sequence[Any]) -> tuple[Expr, Any]:
        if closure.function in functions:
            copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in given]
            found.append((closure.function, copies))
        return enter(self, closure, given)

    with patch.object(evaluator._Evaluator, "_enter", noted):
        evaluator.evaluate(fused, entry, args)
    return found


def check_each(program: Program, module: Module, entry: str = "main") -> None:
    """Compare each call of a kernel that a program makes."""
    fused = fuse(decompose(simplify(to_anf(module), entry), entry))
    made: dict[Function, KernelCall] = {}
    for function, args in kernel_calls(fused, entry, program.arguments()):
        call = made.setdefault(function, KernelCall(function, lower(function), DEVICE))
        wanted = evaluator.evaluate(Module({"main": function}, {}), "main", args)
        try:
            found = run(function, args, call)
        except NoKernel:
            continue
        assert_kernel(found, wanted)


@settings(max_examples=25)
@given(programs(effects=True))
def test_kernels_of_any_program(program: Program) -> None:
    check_each(program, program.module)


@settings(max_examples=15)
@given(programs(size=30, allow_control=False))
def test_kernels_of_straight_line_code(program: Program) -> None:
    check_each(program, program.module)


@settings(max_examples=10)
@given(programs(differentiable=True))
def test_kernels_of_a_gradient(program: Program) -> None:
    check_each(program, derived(program, FIRST), "derived")


@settings(max_examples=10)
@given(programs(effects=True))
def test_a_program_gives_the_same_with_kernels(program: Program) -> None:
    check(program.module, "main", program.arguments, ("triton-interpret",))


@settings(max_examples=10)
@given(programs(differentiable=True, effects=True))
def test_a_gradient_is_the_same_with_kernels(program: Program) -> None:
    check(differentiated(program, FIRST), "derived", program.arguments, ("triton-interpret",))
