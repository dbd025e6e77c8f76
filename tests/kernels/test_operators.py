"""Every operator's samples, fused and run as kernels."""

from __future__ import annotations

import pytest

from pyrelay.ir.op import Op, Sample
from pyrelay.ir.types import DType, FnType, TensorType, TupleType, Type, bfloat16, float16, is_float
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.kernels.fusion.fuse import fuse
from pyrelay.runtime.compile.evaluator import evaluate
from tests.kernels.running import SEED, run
from tests.ops.checks import samples
from tests.ops.fused import inputs
from tests.ops.in_kernels import OPS, Kernels
from tests.ops.materials import in_precision
from tests.ops.test_kernels import program_of
from tests.tolerances import assert_kernel


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_samples_of_an_operator(op: Op) -> None:
    whole = 0
    for sample in samples(op):
        module, sizes = program_of(op, sample)
        args = inputs(op, sample)
        expected = evaluate(module, "main", args)
        in_kernels = Kernels(fuse(decompose(module, "main")), sizes, run)
        assert_kernel(in_kernels(args), expected)
        whole += not in_kernels.refused
    assert whole


def in_half(op: Op, dtype: DType) -> list[Sample]:
    """Return the samples of an operator that have floats, or name a dtype of floats, in a half
    type."""
    return [half for sample in samples(op) if (half := in_precision(sample, dtype)) != sample]


OF_HALVES = [
    pytest.param(op, dtype, id=f"{op.name}-{dtype.name}")
    for dtype in (bfloat16, float16)
    for op in OPS
    if in_half(op, dtype)
]


ADDED_ATOMICALLY = ("embedding_grad", "pad_fold")
"""Operators all of whose calls in half types add in memory, which the kernels leave to torch."""


@pytest.mark.slow
@pytest.mark.parametrize(("op", "dtype"), OF_HALVES)
def test_the_samples_of_an_operator_in_half_types(op: Op, dtype: DType) -> None:
    """Each kernel is compared with float64 as it runs; between kernels values are rounded."""
    whole = 0
    for half in in_half(op, dtype):
        module, sizes = program_of(op, half)
        in_kernels = Kernels(fuse(decompose(module, "main")), sizes, run)
        in_kernels(inputs(op, half, SEED))
        assert set(in_kernels.refused) <= {f"{dtype.name} is not added atomically"}
        whole += not in_kernels.refused
    assert (not whole) == (op.name in ADDED_ATOMICALLY)


@pytest.mark.parametrize(
    "op", [op for op in OPS if not in_half(op, float16)], ids=lambda op: op.name
)
def test_what_has_no_samples_in_half_types_has_no_floats(op: Op) -> None:
    for sample in samples(op):
        ty = program_of(op, sample)[0].functions["main"].ty
        assert isinstance(ty, FnType)
        assert not any(map(has_floats, (*ty.params, ty.result))), ty


def has_floats(ty: Type) -> bool:
    """Return whether a type has floats in it."""
    match ty:
        case TensorType(_, dtype):
            return is_float(dtype)
        case TupleType(fields):
            return any(map(has_floats, fields))
        case _:
            return False
