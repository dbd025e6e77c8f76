"""Operators that are made of others, products and scatters: cut into kernels, which are run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pyrelay.ir.expr import Call, Constant, Expr, GlobalVar, Tuple, TupleGet
from pyrelay.ir.lowering import Contraction, MadeOf, Scatter, inside
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op
from pyrelay.ir.ops import descent
from pyrelay.ir.ops.table import ALL, GENERATED
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
from tests.ops.test_kernels import program_of
from tests.tolerances import assert_kernel

KINDS = [
    op
    for op in (*ALL, *GENERATED)
    if isinstance(inside(op.lowering), MadeOf | Scatter | Contraction)
    and op is not descent.descend_in_place
]


def execute(module: Module, sizes: Mapping[str, int], args: Sequence[Any]) -> Any:
    """Give the value of a straight-line program whose kernel functions are run as kernels."""
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

    bindings, end = straight_line(main.body)
    for binding in bindings:
        match binding.value:
            case Call(callee=GlobalVar(name), args=operands):
                found = run(module.functions[name], [atom(a) for a in operands])
            case Call(callee=Op() as op, args=operands) as call:
                given = [atom(a) for a in operands]
                found = apply_op(op, call, given, lambda dim: dim.evaluate(sizes), CPU)
            case other:
                found = atom(other)
        values[binding.var] = found
    return atom(end)


@pytest.mark.parametrize("op", KINDS, ids=lambda op: op.name)
def test_the_kernels_of_an_operator_give_its_value(op: Op) -> None:
    tried = 0
    for sample in samples(op):
        module, sizes = program_of(op, sample)
        args = inputs(op, sample)
        fused = fuse(decompose(module, "main"))
        try:
            found = execute(fused.module, sizes, args)
        except NoKernel:
            continue  # torch's product is called
        assert_kernel(found, evaluate(module, "main", args))
        tried += 1
    assert tried
