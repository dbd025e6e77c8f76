"""The value of one operator call from what the operator is inside a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Call, Expr
from pyrelay.ir.op import Op, Sample
from pyrelay.lower_torch.apply import apply_op
from pyrelay.lower_torch.elements import UndefinedElementsError, fused_value
from pyrelay.operators.builder import Value
from pyrelay.operators.primitive import pool
from tests.ops.materials import tensors
from tests.ops.programs import CPU, Program, call_program
from tests.ops.straight import atoms


def program_of(op: Op, sample: Sample, names: Mapping[int, Dim]) -> tuple[Program, Value]:
    """Return the program of one call."""
    return call_program(op, sample, names)


def result_and_inputs(
    op: Op, sample: Sample, names: Mapping[int, Dim]
) -> tuple[Any, list[torch.Tensor]]:
    """Return the value on inputs of a sample, None if the call has no rule, and the inputs."""
    args = inputs(op, sample)
    try:
        return fused_result(op, sample, names, args), args
    except UndefinedElementsError:
        return None, args


def is_given(op: Op, sample: Sample) -> bool:
    """Return whether the operator says something of a call."""
    return result_and_inputs(op, sample, {})[0] is not None


def inputs(op: Op, sample: Sample, seed: int = 0) -> list[torch.Tensor]:
    """Return inputs that may occur together: positions under windows of a pool are such."""
    args = tensors(sample, seed)
    if op is not pool.max_pool2d_backward:
        return args
    window = {name: sample.attrs[name] for name in ("kernel_size", "stride")}
    _, places = torch.nn.functional.max_pool2d_with_indices(args[1], **window)
    return [*args[:2], places.to(args[2].dtype)]


def fused_result(
    op: Op, sample: Sample, names: Mapping[int, Dim], args: Sequence[torch.Tensor]
) -> Any:
    """Return the value, the operator as it is inside a kernel. Raises UndefinedElementsError."""
    program, result = call_program(op, sample, names)
    values: dict[Expr, Any] = dict(zip(program.params, args, strict=True))

    atom = atoms(values)

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
    return atom(result.atom)
