"""Every operator's samples as kernels of one operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Function, type_of
from pyrelay.ir.lowering import Elementwise, Pointwise, Reduction, inside
from pyrelay.ir.op import Clash, Op, Sample
from pyrelay.ir.ops.table import ALL
from pyrelay.ir.types import FnType, TupleType
from pyrelay.passes.regions.reading import Unreadable
from tests.kernels.running import assert_same, run
from tests.ops.checks import samples
from tests.ops.fused import inputs
from tests.ops.materials import shape_names
from tests.ops.programs import call_program


def function_of(op: Op, sample: Sample, names: Mapping[int, Dim]) -> tuple[Function, Any]:
    """Give the function of one call, and what the evaluator gives for the sample's tensors."""
    program, result = call_program(op, sample, names)
    if isinstance(result.ty, TupleType):
        result = program.builder.tuple([result[i] for i in range(len(result.ty.fields))])
    types = tuple(map(type_of, program.params))
    expected = program.run(result, inputs(op, sample))
    body = program.builder.block(result)
    function = Function(
        tuple(program.params),
        body,
        result.ty,
        ty=FnType(types, result.ty),
        span=NOWHERE,
        name=op.name,
    )
    return function, expected


def compare(function: Function, op: Op, sample: Sample, expected: Any) -> None:
    """Compare the kernels of a call with the evaluator, where the call can be fused."""
    try:
        found = run(function, inputs(op, sample))
    except Unreadable:
        return  # what no element says by itself, such as an index by bools, is called
    assert_same(found, expected)


kinds = [op for op in ALL if isinstance(inside(op.lowering), Pointwise | Elementwise | Reduction)]


@pytest.mark.parametrize("op", kinds, ids=lambda op: op.name)
def test_the_samples_of_an_operator(op: Op) -> None:
    for sample in samples(op):
        function, expected = function_of(op, sample, {})
        if not function.params:
            continue
        compare(function, op, sample, expected)


@pytest.mark.parametrize("op", kinds, ids=lambda op: op.name)
def test_the_samples_of_an_operator_with_named_sizes(op: Op) -> None:
    for sample in samples(op):
        try:
            function, expected = function_of(op, sample, shape_names(sample))
        except Clash:
            continue  # some operators need a number where others take a name
        if not function.params:
            continue
        compare(function, op, sample, expected)
