"""Generated code of every operator, and what the arithmetic with kernels of its own means."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import pytest
import torch

from pyrelay.ir.declaration.scalars import Scalars
from pyrelay.ir.expr import Call
from pyrelay.ir.op import Effect, Op, Pointwise
from pyrelay.lower_torch.scalars import TorchScalars
from pyrelay.operators.table import ALL
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.runtime.host import compile_module
from tests.ops.checks import assert_equal, operands_of, samples
from tests.ops.materials import tensors
from tests.ops.programs import CPU, call_program
from tests.ops.references import promoted

quiet = [op for op in ALL if not op.effect & (Effect.IO | Effect.RANDOM)]
pointwise = [op for op in ALL if isinstance(op.lowering, Pointwise)]


def composed(name: str) -> bool:
    """Return whether a method of `Scalars` is made of others: those alone say what they mean."""
    return getattr(Scalars, name).__doc__ is not None


def _primitive(name: str) -> Callable[..., Any]:
    return lambda self, *args: getattr(self.torch, name)(*args)


def composed_scalars(dtype: torch.dtype) -> Any:
    """Return arithmetic on torch tensors in which what is made of other methods stays so."""
    names = [n for n in vars(Scalars) if not n.startswith("_") and not composed(n)]
    supplier: Any = type("Composed", (Scalars,), {n: _primitive(n) for n in names})()
    supplier.torch = TorchScalars(dtype, CPU)
    return supplier


@pytest.mark.parametrize("op", quiet, ids=lambda op: op.name)
def test_generated_code_gives_the_value_of_the_evaluator(op: Op) -> None:
    for sample in samples(op):
        program, result = call_program(op, sample, {})
        expected = program.run(result, tensors(sample))
        module = with_flavours(program.module(result))
        actual = compile_module(module, "main", CPU)(*tensors(sample))
        if expected != ():
            assert_equal(actual, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("op", pointwise, ids=lambda op: op.name)
def test_a_kernel_computes_what_its_arithmetic_is_made_of(op: Op) -> None:
    assert isinstance(op.lowering, Pointwise)
    for sample in samples(op):
        operands = promoted(op, operands_of(sample, tensors(sample)))
        program, result = call_program(op, sample, {})
        floats = [
            v.dtype for v in operands if isinstance(v, torch.Tensor) and v.is_floating_point()
        ]
        scalars = composed_scalars(floats[0] if floats else torch.int64)
        call = program.builder.bindings[-1].value
        assert isinstance(call, Call)
        actual = op.lowering.body(scalars, *operands, *call.attrs.values())
        expected = program.run(result, tensors(sample))
        assert_equal(actual, expected, dtype=False, rtol=1e-5, atol=1e-6)


_AT_ENDS: Final = {
    "asinh": [-math.inf, -3e38, -1e12, -9e7, -2.0, -1e-6, 0.0, 1e-6, 0.5, 1.1e8, 3e38, math.nan],
    "acosh": [-math.inf, -1e30, -2.0, 0.5, 1.0, 1.000001, 2.0, 9e7, 1.1e8, 3e38, math.nan],
    "atanh": [-math.inf, -2.0, -1.0, -0.999999, -1e-6, 0.0, 1e-6, 0.5, 1.0, 1e30, math.nan],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", _AT_ENDS)
def test_composed_inverse_hyperbolic_functions_are_exact_at_their_ends(
    name: str, dtype: torch.dtype
) -> None:
    x = torch.tensor(_AT_ENDS[name], dtype=dtype)
    actual = getattr(composed_scalars(dtype), name)(x)
    expected = getattr(torch, name)(x.double()).to(dtype)
    rtol = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=0.0, equal_nan=True)
