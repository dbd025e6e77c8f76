"""Every operator's generated code gives what its body gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Function, type_of
from pyrelay.ir.module import Module
from pyrelay.ir.op import Clash, Op, Sample, TensorSpec
from pyrelay.ir.types import DTYPES, FnType, is_float
from pyrelay.operators.builder import Value
from pyrelay.operators.table import ALL
from pyrelay.passes.normalise.write_out import write_out
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host import CompiledProgram, compile_module
from tests.ops.checks import assert_equal, assert_has_type, samples
from tests.ops.materials import shape_names, specs, tensors
from tests.ops.programs import Program, call_program

CPU = torch.device("cpu")
OPS = [op for op in ALL if samples(op)]

every_operator = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)


def module_of(program: Program, result: Value) -> Module:
    params = tuple(program.params)
    ty = FnType(tuple(type_of(p) for p in params), result.ty)
    body = program.builder.block(result)
    return Module({"main": Function(params, body, result.ty, ty=ty, span=NOWHERE)}, {})


def compiled(op: Op, sample: Sample, names: Mapping[int, Dim]) -> tuple[Module, CompiledProgram]:
    module = module_of(*call_program(op, sample, names))
    return module, compile_module(write_out(module), "main", CPU)


def number(spec: TensorSpec, value: torch.Tensor) -> Any:
    is_number = spec.shape == () and not is_float(DTYPES[spec.dtype])
    return value.item() if is_number else value


@every_operator
def test_generated_code_gives_the_value_of_the_body(op: Op) -> None:
    for sample in samples(op):
        module, program = compiled(op, sample, {})
        values = tensors(sample)
        expected = evaluate(module, "main", values)
        actual = program(*tensors(sample))
        assert_equal(actual, expected, rtol=1e-6, atol=1e-6)


@every_operator
def test_generated_code_reads_named_sizes_off_its_arguments(op: Op) -> None:
    for sample in samples(op):
        names = shape_names(sample)
        try:
            module, program = compiled(op, sample, names)
        except Clash:
            continue  # some operators need a number where others take a name
        values = tensors(sample)
        expected = evaluate(module, "main", values)
        actual = program(*tensors(sample))
        assert_equal(actual, expected, rtol=1e-6, atol=1e-6)
        sizes = {str(dim): size for size, dim in names.items()}
        result = module.functions["main"].result
        assert result is not None
        assert_has_type(actual, result, sizes)


@every_operator
def test_generated_code_takes_python_numbers(op: Op) -> None:
    for sample in samples(op):
        module, program = compiled(op, sample, {})
        pairs = zip(specs(sample), tensors(sample), strict=True)
        values = [number(spec, value) for spec, value in pairs]
        expected = evaluate(module, "main", values)
        assert_equal(program(*values), expected, rtol=1e-6, atol=1e-6)
