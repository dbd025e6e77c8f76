"""What operators are inside kernels: each gives its own value from its fused meaning alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Call, Constant, Expr, Tuple, TupleGet
from pyrelay.ir.lowering import inside
from pyrelay.ir.op import Clash, Op, Sample
from pyrelay.ir.ops import descent, pool
from pyrelay.ir.ops.table import ALL, GENERATED
from pyrelay.ir.types import TensorType, Type, is_float
from pyrelay.lower_torch.apply import apply_op
from pyrelay.lower_torch.constants import is_host_number, tensor_constant
from pyrelay.lower_torch.elements import NotSaidError, fused_value
from tests.ops.checks import assert_equal, samples
from tests.ops.materials import shape_names, tensors
from tests.ops.programs import CPU, Program, call_program

EVERY = (*ALL, *GENERATED)
fused = pytest.mark.parametrize(
    "op",
    [op for op in EVERY if inside(op.lowering) is not None and op is not descent.descend_in_place],
    ids=lambda op: op.name,
)


def run_fused(op: Op, program: Program, result: Expr, args: list[torch.Tensor]) -> Any:
    """Give the value of the program of one call, with the operator as it is inside a kernel."""
    values: dict[Expr, Any] = dict(zip(program.params, args, strict=True))

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
        return dim.evaluate(program.solver.sizes)

    for binding in program.builder.bindings:
        match binding.value:
            case Call(callee=Op() as called, args=operands) as call:
                given = [atom(a) for a in operands]
                values[binding.var] = (
                    fused_value(called, call, given, size, CPU, program.solver)
                    if called is op
                    else apply_op(called, call, given, size, CPU)
                )
            case other:
                values[binding.var] = atom(other)
    return atom(result)


def prepared(op: Op, sample: Sample, args: list[torch.Tensor]) -> list[torch.Tensor]:
    """Give inputs that may occur together: positions under windows of a pool are such."""
    if op is not pool.max_pool2d_backward:
        return args
    window = {name: sample.attrs[name] for name in ("kernel_size", "stride")}
    _, places = torch.nn.functional.max_pool2d_with_indices(args[1], **window)
    return [*args[:2], places]


def check(op: Op, sample: Sample, names: Mapping[int, Dim]) -> None:
    program, result = call_program(op, sample, names)
    args = prepared(op, sample, tensors(sample))
    actual = run_fused(op, program, result.atom, args)
    rtol, atol = (1e-5, 1e-6) if has_floats(result.ty) else (0, 0)
    assert_equal(actual, program.run(result, args), rtol=rtol, atol=atol, dtype=False)


def has_floats(ty: Type) -> bool:
    return not isinstance(ty, TensorType) or is_float(ty.dtype)


def is_said(op: Op, sample: Sample, names: Mapping[int, Dim]) -> bool:
    """Tell whether the declaration says something of the call; the value is then compared."""
    try:
        check(op, sample, names)
    except NotSaidError:
        return False
    return True


@fused
def test_an_operator_gives_its_value_from_what_it_is_inside_a_kernel(op: Op) -> None:
    said = [is_said(op, sample, {}) for sample in samples(op)]
    assert any(said)


@fused
def test_what_it_is_inside_a_kernel_looks_at_no_size(op: Op) -> None:
    for sample in samples(op):
        try:
            is_said(op, sample, shape_names(sample))
        except Clash:
            continue  # some operators need a number where others take a name
