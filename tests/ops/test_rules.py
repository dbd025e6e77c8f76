"""Every operator's type, value and description, on every one of its samples."""

from __future__ import annotations

import pytest
import torch

from pyrelay.ir.op import Clash, Op, Pointwise, Sample, TensorSpec
from pyrelay.ir.types import DTYPES, DType, bfloat16, float64, is_float
from pyrelay.operators.table import ALL
from tests.ops.checks import assert_equal, assert_has_type, operands_of, samples
from tests.ops.materials import in_precision, shape_names, specs, tensors
from tests.ops.programs import call_program
from tests.ops.references import call_reference, reference


def is_number(spec: TensorSpec) -> bool:
    """Return whether a value may be a Python number at run time."""
    return spec.shape == () and not is_float(DTYPES[spec.dtype])


def has_number(sample: Sample) -> bool:
    """Return whether the sample has an operand that may be a Python number at run time."""
    return any(map(is_number, specs(sample)))


every_operator = pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)


@every_operator
def test_an_operator_is_described_and_sampled(op: Op) -> None:
    assert op.doc.endswith(".")
    assert list(op.samples())
    assert len({p.name for p in op.params}) == len(op.params)


def test_no_two_operators_share_a_name() -> None:
    names = [op.name for op in ALL]
    assert len(names) == len(set(names))


@every_operator
def test_the_declared_type_is_the_type_of_the_value(op: Op) -> None:
    for sample in samples(op):
        program, result = call_program(op, sample, {})
        assert_has_type(program.run(result, tensors(sample)), result.ty, {})


@every_operator
def test_the_declared_type_holds_of_named_dims(op: Op) -> None:
    for sample in samples(op):
        names = shape_names(sample)
        try:
            program, result = call_program(op, sample, names)
        except Clash:
            continue  # some operators need a number where others take a name
        sizes = {str(dim): size for size, dim in names.items()}
        value = program.run(result, tensors(sample))
        assert_has_type(value, result.ty, sizes)


@pytest.mark.parametrize("dtype", [bfloat16, float64], ids=str)
@pytest.mark.parametrize(
    "op", [op for op in ALL if isinstance(op.lowering, Pointwise)], ids=lambda op: op.name
)
def test_a_pointwise_operator_keeps_the_precision_of_its_operands(op: Op, dtype: DType) -> None:
    for sample in samples(op):
        narrowed = in_precision(sample, dtype)
        program, result = call_program(op, narrowed, {})
        assert_has_type(program.run(result, tensors(narrowed)), result.ty, {})


@pytest.mark.parametrize(
    "op", [op for op in ALL if reference(op) is not None], ids=lambda op: op.name
)
def test_the_value_is_that_of_torch(op: Op) -> None:
    for sample in samples(op):
        program, result = call_program(op, sample, {})
        values = tensors(sample)
        actual = program.run(result, values)
        expected = call_reference(op, operands_of(sample, values), sample.attrs)
        assert_equal(actual, expected, rtol=1e-5, atol=1e-6, dtype=isinstance(actual, torch.Tensor))


@pytest.mark.parametrize(
    "op", [op for op in ALL if any(map(has_number, op.samples()))], ids=lambda op: op.name
)
def test_an_integer_of_rank_0_may_be_a_python_number(op: Op) -> None:
    for sample in filter(has_number, samples(op)):
        program, result = call_program(op, sample, {})
        values = tensors(sample)
        numbers = [
            v.item() if is_number(spec) else v
            for v, spec in zip(values, specs(sample), strict=True)
        ]
        actual, expected = program.run(result, numbers), program.run(result, values)
        assert_has_type(actual, result.ty, {})
        assert_equal(actual, expected, rtol=0, atol=0, dtype=False)


@every_operator
def test_operands_are_never_written(op: Op) -> None:
    for sample in samples(op):
        program, result = call_program(op, sample, {})
        values = tensors(sample)
        before = [v.clone() for v in values]
        program.run(result, values)
        assert_equal(values, before, rtol=0, atol=0)
        assert all(v._version == 0 for v in values)


def test_samples_reach_every_kind_of_input() -> None:
    found = [spec for op in ALL for sample in samples(op) for spec in specs(sample)]
    assert any(not spec.contiguous for spec in found)
    assert any(spec.shape == () for spec in found)
    assert any(0 in spec.shape for spec in found)
    assert {"float32", "float64", "int64", "int32", "bool"} <= {spec.dtype for spec in found}
