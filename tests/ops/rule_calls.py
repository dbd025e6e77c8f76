"""Type rules under the solver of inference, where dims may be unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.infer.solver import Solver
from pyrelay.ir.calls.attributes import bind_attrs
from pyrelay.ir.dims import Dim
from pyrelay.ir.op import Op, RuleCall
from pyrelay.ir.types import UNIT, TensorType, Type, float32


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
    """Return the type of a call, with all that is known by then filled in; operands at the end may
    be left out."""
    solver = solver or new_solver()
    bound = bind_attrs(op, {n: with_dims(v) for n, v in (attrs or {}).items()})
    omitted = (UNIT,) * (len(op.operands) - len(types))
    call = RuleCall(op, (*types, *omitted), bound, solver)
    return solver.resolve(op.type_rule(call))


def with_dims(value: Any) -> Any:
    """Return an attribute with the names in its tuples as dims."""
    if not isinstance(value, tuple):
        return value
    return tuple(Dim.of(v) if isinstance(v, str) else v for v in value)


def shape_text(ty: Type) -> str:
    assert isinstance(ty, TensorType)
    return ", ".join(map(str, ty.shape))
