"""Every operator's samples, fused and run as kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from pyrelay.ir.expr import Call, Expr, GlobalVar
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op
from pyrelay.ir.ops import descent
from pyrelay.ir.types import DType, bfloat16, float16
from pyrelay.lower_torch.apply import apply_op
from pyrelay.lower_triton.kernel import NoKernel
from pyrelay.passes.regions.decompose import decompose
from pyrelay.passes.regions.fuse import fuse
from pyrelay.passes.regions.reading import straight_line
from pyrelay.runtime.evaluator import evaluate
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
        self.refused = 0
        """The calls of functions for which there are no kernels."""

    def __call__(self, args: Sequence[Any]) -> Any:
        """Give the value of the program."""
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
        except NoKernel:
            self.refused += 1
            return evaluate(self._module, name, given)


OPS = [op for op in EVERY if op is not descent.descend_in_place]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_samples_of_an_operator(op: Op) -> None:
    whole = 0
    for sample in samples(op):
        module, sizes = program_of(op, sample)
        args = inputs(op, sample)
        expected = evaluate(module, "main", args)
        in_kernels = Kernels(fuse(decompose(module, "main")).module, sizes)
        assert_kernel(in_kernels(args), expected)
        whole += not in_kernels.refused
    assert whole


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [bfloat16, float16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_samples_of_an_operator_in_half_types(op: Op, dtype: DType) -> None:
    """Each kernel is compared with float64 as it runs; between kernels values are rounded."""
    tried = 0
    for sample in samples(op):
        half = in_precision(sample, dtype)
        if half == sample:
            continue
        try:
            module, sizes = program_of(op, half)
        except AssertionError:
            continue  # the operator does not take it
        Kernels(fuse(decompose(module, "main")).module, sizes)(inputs(op, half, SEED))
        tried += 1
    if not tried:
        pytest.skip(f"{op.name} has no samples in {dtype.name}")
