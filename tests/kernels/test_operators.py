"""Every operator's samples, fused and run as kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from pyrelay.ir.expr import Call, Expr, GlobalVar
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op, Sample
from pyrelay.ir.types import DType, FnType, TensorType, TupleType, Type, bfloat16, float16, is_float
from pyrelay.kernels.calling import NoKernel
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.kernels.fusion.fuse import fuse
from pyrelay.kernels.reading import straight_line
from pyrelay.lower_torch.apply import apply_op
from pyrelay.operators.composite import descent
from pyrelay.runtime.compile.evaluator import evaluate
from tests.kernels.running import CPU, SEED, run
from tests.ops.checks import samples
from tests.ops.fused import inputs
from tests.ops.materials import in_precision
from tests.ops.straight import atoms
from tests.ops.test_kernels import EVERY, program_of
from tests.tolerances import assert_kernel


class Kernels:
    """Runs a straight-line program, calls of its kernel functions as kernels."""

    def __init__(self, module: Module, sizes: Mapping[str, int]) -> None:
        self._module = module
        self._sizes = sizes
        self.refused: list[str] = []
        """Why there are no kernels for functions that were called."""

    def __call__(self, args: Sequence[Any]) -> Any:
        """Return the value of the program."""
        main = self._module.functions["main"]
        values: dict[Expr, Any] = dict(zip(main.params, args, strict=True))
        bindings, end = straight_line(main.body)
        for binding in bindings:
            values[binding.var] = self._step(binding.value, atoms(values))
        return self._step(end, atoms(values))

    def _step(self, expr: Expr, atom: Callable[[Expr], Any]) -> Any:
        match expr:
            case Call(callee=Op() as op, args=operands):
                given = [atom(a) for a in operands]
                return apply_op(op, expr, given, lambda dim: dim.evaluate(self._sizes), CPU)
            case Call(callee=GlobalVar(name), args=operands):
                return self._kernel(name, [atom(a) for a in operands])
            case other:
                return atom(other)

    def _kernel(self, name: str, given: Sequence[Any]) -> Any:
        try:
            return run(self._module.functions[name], given)
        except NoKernel as error:
            self.refused.append(str(error))
            return evaluate(self._module, name, given)


OPS = [op for op in EVERY if op is not descent.descend_in_place]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_samples_of_an_operator(op: Op) -> None:
    whole = 0
    for sample in samples(op):
        module, sizes = program_of(op, sample)
        args = inputs(op, sample)
        expected = evaluate(module, "main", args)
        in_kernels = Kernels(fuse(decompose(module, "main")), sizes)
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
        in_kernels = Kernels(fuse(decompose(module, "main")), sizes)
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
