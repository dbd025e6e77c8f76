"""Constraints between the shapes of a model's parameters where the program does not call the
model."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.dims import Dim
from ...ir.expr import Call, Expr, Function, GlobalVar, Var
from ...ir.types import Substitution
from ..program.context import Context
from ..program.models import ModelInstance


def tied(
    cx: Context,
    instance: ModelInstance,
    params: Expr,
    state: Expr | None = None,
    sizes: Mapping[str, Dim] | None = None,
) -> Function:
    """Return a function that calls the model with these parameters, at the sizes given. It is never
    called itself: it ties the shapes of the parameters, as any call of the model would."""
    span = params.span
    signature = cx.program.signature(instance.definition)
    known = dict(sizes or {})
    replace = Substitution(known, {})
    values = tuple(Var(p.name, replace(p.ty), span=span) for p in signature.values)
    inside = Var("state", span=span)
    callee = GlobalVar(cx.program.function_name(instance), span=span)
    body = Call(callee, (params, state or inside, *values), span=span)
    own = tuple(p for p in signature.type_params if p.name not in known)
    taken = (inside, *values) if state is None else values
    return Function(taken, body, None, own, span=span)
