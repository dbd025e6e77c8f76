"""Cutting a program into kernels and regions keeps its types and its meaning."""

from __future__ import annotations

from hypothesis import given, settings

from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import type_of
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.types import SizeType
from pyrelay.ir.verify import Stage, verify
from pyrelay.kernels.cost import cost_of, size_of
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.kernels.fusion.fuse import fuse
from pyrelay.kernels.fusion.outline import outline
from pyrelay.kernels.groups import Group
from pyrelay.kernels.outlined import outlined_of
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.runtime.compile.evaluator import evaluate
from tests.property.test_gradients import FIRST, derived
from tests.strategies import Program, programs
from tests.tolerances import assert_program
from tests.unit.kernels.recognised import checked


def check(program: Program, module: Module, entry: str = "main") -> None:
    """Compare what a simplified program gives before and after every step, and what each kernel
    moves with what it must."""
    expected = evaluate(module, entry, program.arguments())
    written = decompose(module, entry)
    verify(written, Stage.DERIVED)
    assert_program(evaluate(written, entry, program.arguments()), expected)
    fused = fuse(written)
    verify(fused, Stage.REGIONS)
    assert_program(evaluate(fused, entry, program.arguments()), expected)
    for group in outlined_of(fused).groups.values():
        check_traffic(checked(group), program)
    outlined = outline(fused)
    verify(outlined, Stage.REGIONS)
    assert_program(evaluate(outlined, entry, program.arguments()), expected)


def check_traffic(group: Group, program: Program) -> None:
    """Check that a kernel moves no more than each operand and each output once."""
    params = (p.ty for p in group.function.params)
    least = sum((size_of(t) for t in params if not isinstance(t, SizeType)), Dim.of(0))
    least = sum((size_of(type_of(o.value)) for o in group.outputs), least)
    moved = cost_of(group).bytes
    sizes = {name: program.sizes.get(name, 5) for name in (moved + least).names()}
    assert moved.evaluate(sizes) <= 1.1 * least.evaluate(sizes)


def simplified(program: Program) -> Module:
    return simplify(to_anf(program.module), "main")


@given(programs(effects=True))
def test_any_program_in_kernels_means_what_it_meant(program: Program) -> None:
    check(program, simplified(program))


@given(programs(size=30, allow_control=False))
def test_straight_line_code_in_kernels_means_what_it_meant(program: Program) -> None:
    check(program, simplified(program))


@settings(max_examples=settings().max_examples // 2)
@given(programs(differentiable=True))
def test_a_gradient_in_kernels_means_what_it_meant(program: Program) -> None:
    check(program, simplify(derived(program, FIRST), "derived"), "derived")
