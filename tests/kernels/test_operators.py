"""Every operator's samples, fused and run as kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Call, Constant, Expr, GlobalVar, Tuple, TupleGet
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op
from pyrelay.ir.ops import descent
from pyrelay.lower_torch.apply import apply_op
from pyrelay.lower_torch.constants import is_host_number, tensor_constant
from pyrelay.lower_triton.kernel import NoKernel
from pyrelay.passes.regions.decompose import decompose
from pyrelay.passes.regions.fuse import fuse
from pyrelay.passes.regions.reading import straight_line
from pyrelay.runtime.evaluator import evaluate
from tests.kernels.running import CPU, run
from tests.ops.checks import samples
from tests.ops.fused import inputs
from tests.ops.test_kernels import EVERY, program_of
from tests.tolerances import assert_kernel


def in_kernels(module: Module, args: Sequence[Any], sizes: Mapping[str, int]) -> Any:
    """Give the value of a straight-line program, calls of its functions as kernels."""
    main = module.functions["main"]
    values: dict[Expr, Any] = dict(zip(main.params, args, strict=True))

    def atom(expr: Expr) -> Any:
        match expr:
            case Tuple(fields):
                return tuple(map(atom, fields))
            case TupleGet(value, index):
                return atom(value)[index]
            case Constant():
                return expr.value if is_host_number(expr) else tensor_constant(expr, CPU)
            case _:
                return values[expr]

    def size(dim: Dim) -> int:
        return dim.evaluate(sizes)

    bindings, end = straight_line(main.body)
    for binding in bindings:
        values[binding.var] = _step(binding.value, module, atom, size)
    return _step(end, module, atom, size)


def _step(expr: Expr, module: Module, atom: Any, size: Any) -> Any:
    match expr:
        case Call(callee=Op() as op, args=operands):
            return apply_op(op, expr, [atom(a) for a in operands], size, CPU)
        case Call(callee=GlobalVar(name), args=operands):
            given = [atom(a) for a in operands]
            try:
                return run(module.functions[name], given)
            except NoKernel:
                return evaluate(module, name, given)
        case other:
            return atom(other)


@pytest.mark.parametrize(
    "op", [op for op in EVERY if op is not descent.descend_in_place], ids=lambda op: op.name
)
def test_the_samples_of_an_operator(op: Op) -> None:
    for sample in samples(op):
        module, sizes = program_of(op, sample)
        args = inputs(op, sample)
        expected = evaluate(module, "main", args)
        fused = fuse(decompose(module, "main"))
        assert_kernel(in_kernels(fused.module, args, sizes), expected)
