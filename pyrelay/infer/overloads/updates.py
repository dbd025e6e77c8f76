"""The gradient that an update of a model takes: it has the structure of the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ...ir.op import Clash
from ...ir.types import TensorType, TupleType, Type, TypeHole, show
from ..operators import OperatorCall, Reading
from ..solver import Solver
from .sites import ReadCall

if TYPE_CHECKING:
    from ...ir.module import AdtDef

_WAY: Final = (
    "it is the second of `value, grads = relay.value_and_grad(model, loss, (x, y))`, and of a "
    'function of parameters that of `relay.value_and_grad(f, wrt="params")`'
)


def gradient(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading:
    """Read the gradient of an update as itself. Raises Stuck, and Clash where it is no gradient in
    the parameters."""
    solver.awaited(call.types[1])
    params, grads = map(solver.resolve, call.types)
    if not _is_alike(params, grads):
        raise Clash(
            "`relay.update_model_params` takes the gradient in the model's parameters",
            labels={1: f"this is {show(grads)}"},
            help=_WAY,
        )
    site = ReadCall(call, solver)
    return Reading(site.operands, site.operand(1))


def _is_alike(params: Type, grads: Type) -> bool:
    """Return whether there may be a tensor for each parameter; what is not known yet fits."""
    pending = [(params, grads)]
    while pending:
        match pending.pop():
            case (TypeHole(), _) | (_, TypeHole()):
                pass
            case (TupleType(ours), TupleType(theirs)) if len(ours) == len(theirs):
                pending += zip(ours, theirs, strict=True)
            case (TensorType(shape), TensorType(other)) if len(shape) == len(other):
                pass
            case _:
                return False
    return True
