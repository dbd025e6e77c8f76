"""Every operator between the steps of regions: in kernels, and read element by element."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.ir.declaration.lowering import Elementwise, Pointwise, inside
from pyrelay.ir.dims import DimVar
from pyrelay.ir.expr import Call, Function, type_of
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.op import Clash, Effect, Op, Sample
from pyrelay.ir.types import FnType, TupleType
from pyrelay.ir.verify import Stage, VerifyError, verify
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.kernels.fusion.fuse import fuse
from pyrelay.kernels.fusion.nodes import has_elements
from pyrelay.kernels.outlined import outlined_of
from pyrelay.kernels.reading import straight_line
from pyrelay.operators.table import ALL, GENERATED
from pyrelay.runtime.compile.evaluator import evaluate
from tests.ops.checks import assert_equal, samples
from tests.ops.fused import inputs
from tests.ops.materials import shape_names
from tests.ops.programs import call_program
from tests.unit.kernels.recognised import checked
from tests.unit.kernels.supplied import read_results

EVERY = [
    op
    for op in (*ALL, *GENERATED)
    if inside(op.lowering) is not None and not op.effect & Effect.STATE
]


def program_of(op: Op, sample: Sample, *, is_named: bool = True) -> tuple[Module, dict[str, int]]:
    """Return the program of one call; its sizes have names if the operator takes them as they are,
    and they are to have some."""
    for names in (shape_names(sample), {}) if is_named else ({},):
        try:
            program, result = call_program(op, sample, names)
        except Clash:
            continue  # some operators need a number where others take a name
        if isinstance(result.ty, TupleType) and result.ty.fields:
            result = program.builder.tuple([result[i] for i in range(len(result.ty.fields))])
        types = tuple(type_of(p) for p in program.params)
        sizes = tuple(DimVar(str(d)) for d in names.values())
        function = Function(
            tuple(program.params),
            program.builder.block(result),
            result.ty,
            sizes,
            ty=FnType(types, result.ty, sizes),
            span=program.builder.span,
        )
        module = to_anf(Module({"main": function}, {}))
        try:
            verify(module, Stage.DERIVED)
        except VerifyError:
            continue  # it would need an assumption that two of the names are equal
        return module, {str(d): n for n, d in names.items()}
    raise AssertionError(sample)


@pytest.mark.parametrize("op", EVERY, ids=lambda op: op.name)
def test_a_program_in_kernels_has_its_value(op: Op) -> None:
    for sample in samples(op):
        module, _ = program_of(op, sample)
        args = inputs(op, sample)
        written = decompose(module, "main")
        verify(written, Stage.DERIVED)
        fused = fuse(written)
        verify(fused, Stage.REGIONS)
        for group in outlined_of(fused).groups.values():
            assert checked(group).outputs
        found = evaluate(fused, "main", args)
        expected = evaluate(module, "main", args)
        assert_equal(found, expected, rtol=1e-4, atol=1e-5, dtype=False)


@pytest.mark.parametrize(
    "op",
    [op for op in EVERY if isinstance(inside(op.lowering), Elementwise | Pointwise)],
    ids=lambda op: op.name,
)
def test_elements_that_are_read_are_those_of_the_value(op: Op) -> None:
    read = 0
    for sample in samples(op):
        module, sizes = program_of(op, sample)
        args = inputs(op, sample)
        expected = evaluate(module, "main", args)
        if not _has_elements(expected) or not all(map(has_elements, calls_of(op, module))):
            continue
        found = read_results(module.functions["main"], tuple(args), sizes)
        wanted = expected if isinstance(expected, tuple) else (expected,)
        assert_equal(tuple(found), wanted, rtol=1e-5, atol=1e-6, dtype=False)
        read += 1
    assert read


def calls_of(op: Op, module: Module) -> list[Call]:
    values = [b.value for b in straight_line(module.functions["main"].body)[0]]
    return [v for v in values if isinstance(v, Call) and v.callee is op]


def _has_elements(value: Any) -> bool:
    parts = value if isinstance(value, tuple) else (value,)
    return all(torch.as_tensor(p).numel() for p in parts)
