"""Cutting a program into kernels and regions keeps its types and its meaning."""

from __future__ import annotations

from hypothesis import given

from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.normal_form import to_anf
from pyrelay.passes.regions.decompose import decompose
from pyrelay.passes.regions.fuse import fuse
from pyrelay.passes.regions.groups import group_of
from pyrelay.passes.regions.outline import outline
from pyrelay.passes.simplify import simplify
from pyrelay.runtime.evaluator import evaluate
from tests.property.values import assert_same
from tests.strategies import Program, programs


def check(program: Program) -> None:
    module = simplify(to_anf(program.module), "main")
    expected = evaluate(program.module, "main", program.arguments())
    written = decompose(module, "main")
    verify(written, Stage.DERIVED)
    assert_same(evaluate(written, "main", program.arguments()), expected)
    fused = fuse(written)
    verify(fused.module, Stage.REGIONS)
    assert_same(evaluate(fused.module, "main", program.arguments()), expected)
    for name in fused.kernels:
        assert group_of(fused.module.functions[name]).outputs
    outlined, _ = outline(fused.module, fused.kernels)
    verify(outlined, Stage.REGIONS)
    assert_same(evaluate(outlined, "main", program.arguments()), expected)


@given(programs(effects=True))
def test_any_program_in_kernels_means_what_it_meant(program: Program) -> None:
    check(program)


@given(programs(size=30, allow_control=False))
def test_straight_line_code_in_kernels_means_what_it_meant(program: Program) -> None:
    check(program)
