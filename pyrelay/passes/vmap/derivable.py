"""Mapped functions whose derivative is the map of a derivative.

Elsewhere the code for a batch is differentiated like any other. Under one more `vmap` that does not
do: what such code saves depends on which elements took an arm, and only the transform itself says
over which pairs it can be written (`pairs.py`). So it stays known. The function that `vmap` makes
calls a ruled one, all of whose floats are batched: arguments that elements share are repeated for
it, and the derivative of that is the sum over elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.call_graph import reachable
from ...ir.derived_types.batch_dims import axes_of
from ...ir.expr import (
    Batching,
    Binding,
    Call,
    Differentiation,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    Rule,
    Transform,
    Var,
    type_of,
)
from ...ir.names import Names
from ...ir.traverse import post_order
from ...ir.types import FnType, TupleType, Type
from ...operators.primitive.gathering import nonzero
from ..deriving.copying import Copier
from ..deriving.deriver import Wanted, own_params

if TYPE_CHECKING:
    from ...ir.transforms import Axes
    from ..deriving.workspace import Workspace


def has_lanes(space: Workspace, name: str) -> bool:
    """Return whether a function works on numbers of elements that only a run knows."""
    functions = space.store.functions
    return any(
        isinstance(node, Call) and node.callee is nonzero
        for reached in reachable(functions, (name,))
        for node in post_order(functions[reached].body)
    )


def with_floats_batched(space: Workspace, wanted: Wanted) -> Wanted | None:
    """Return the transform that maps the same function with all floats batched in front; None where
    a part of the result has no batch."""
    options, function = wanted.options, space.store.functions[wanted.function]
    assert isinstance(options, Batching)
    assert isinstance(function.ty, FnType)
    if not _is_batched(function.ty.result, options.out_axes):
        return None
    own = own_params(function, wanted)
    axes = (*(None,) * wanted.captures, *options.axes(len(own)))
    each = zip(function.params, axes, strict=True)
    inside = tuple(_in_front(space, type_of(p), a) for p, a in each)
    return Wanted(Rule.VMAP, wanted.function, 0, Batching(inside, 0))


def _is_batched(ty: Type, axes: Axes) -> bool:
    if isinstance(ty, TupleType):
        return all(map(_is_batched, ty.fields, axes_of(ty, axes)))
    return axes is not None


def _in_front(space: Workspace, ty: Type, axes: Axes) -> Axes:
    if isinstance(ty, TupleType):
        each = zip(ty.fields, axes_of(ty, axes), strict=True)
        return tuple(_in_front(space, t, a) for t, a in each)
    return 0 if axes is not None or space.leaves.width(ty) else None


def ruled(space: Workspace, wanted: Wanted, mapped: str) -> str:
    """Define the ruled function of a mapped one; return its name."""
    function = space.store.functions[mapped]
    assert isinstance(function.ty, FnType)
    name = space.store.function_name(f"{wanted.function}_map")
    params = tuple(map(Copier(Names()).fresh, function.params))
    plain = FnType(function.ty.params, function.ty.result)
    callee = GlobalVar(mapped, plain, span=function.span)
    wrt = tuple(i for i, p in enumerate(params) if space.leaves.width(type_of(p)))
    options = Differentiation(wrt, single=False)
    rule = Transform(Rule.CUSTOM_VJP, callee, options, ty=plain, span=function.span)
    own = Var("own", plain, span=function.span)
    result = function.ty.result
    call = Call(own, params, ty=result, span=function.span)
    body = LetBlock((Binding(own, rule),), call, Flavour.PURE, ty=result, span=function.span)
    space.store.functions[name] = Function(
        params,
        body,
        result,
        function.type_params,
        name,
        function.assumptions,
        ty=function.ty,
        span=function.span,
    )
    space.mapped[name] = wanted
    return name
