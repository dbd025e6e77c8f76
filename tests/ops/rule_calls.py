"""Type rules under the solver of inference, where dims may be unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.build import bind_attrs
from pyrelay.ir.dims import Dim
from pyrelay.ir.op import Op, RuleCall
from pyrelay.ir.types import TensorType, Type, float32
from pyrelay.passes.infer.solver import Solver


def new_solver() -> Solver:
    solver = Solver()
    solver.span = NOWHERE
    return solver


def floats(*shape: Dim | int | str) -> TensorType:
    return TensorType(tuple(Dim.of(d) for d in shape), float32)


def type_of_call(
    op: Op,
    types: Sequence[Type],
    attrs: Mapping[str, Any] | None = None,
    solver: Solver | None = None,
) -> Type:
    """Give the type of a call, with all that is known by then filled in."""
    solver = solver or new_solver()
    call = RuleCall(op, tuple(types), bind_attrs(op, attrs or {}), solver)
    return solver.resolve(op.type_rule(call))


def shape_text(ty: Type) -> str:
    assert isinstance(ty, TensorType)
    return ", ".join(map(str, ty.shape))
