"""`relay.stop_gradient` of values that are no tensors: data, tuples, lists, records of parameters.

The operator stands for an annotated identity function: no derivative passes through it, and the
expansion of transforms removes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...ir.expr import Call, Differentiation, Function, Rule, Transform, Var
from ...ir.types import SizeType, TensorType, TypeHole
from ..operators import OperatorCall, Reading
from ..solver import Solver
from .sites import ReadCall

if TYPE_CHECKING:
    from ...ir.module import AdtDef


def stop_gradient_reading(
    call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]
) -> Reading | None:
    """Return the reading for a value that is no tensor; None for a tensor, which the operator
    itself takes. Raises Stuck."""
    ty = solver.awaited(call.types[0])
    if isinstance(ty, TypeHole | TensorType | SizeType):
        return None
    site = ReadCall(call, solver)
    var = Var("value", span=site.span)
    identity = Function((var,), var, name="stop_gradient", span=site.span)
    transform = Transform(Rule.STOP_GRADIENT, identity, Differentiation(), span=site.span)
    return Reading(site.operands, Call(transform, (site.operand(0),), span=site.span))
