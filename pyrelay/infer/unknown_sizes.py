"""Local functions whose parameters have sizes `?`, as Relay means them: another size in each call.

Such a size becomes a type parameter of the function, which is then typed for each place that
mentions it. A function that calls itself, as a loop does, may do so at another size only if it is a
global function (polymorphic recursion), so it is made one, with its captures in front of its
parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from ..ir.dims import Dim, DimHole, DimVar
from ..ir.expr import Call, Expr, Flavour, Function, GlobalVar, LetBlock, Var
from ..ir.names import Names
from ..ir.traverse import bound_vars, free_vars, post_order, rewrite, substitute
from ..ir.types import (
    UNKNOWN_DIM,
    Type,
    TypeHole,
    TypeParam,
    TypeVar,
    dim_names,
    dims,
    map_type,
    subtypes,
)


def with_own_sizes(functions: Mapping[str, Function]) -> dict[str, Function]:
    """Return the functions with names for the sizes that local functions leave open, those that
    call themselves as functions of the module."""
    names = Names(functions)
    found: dict[str, Function] = {}
    for name, function in functions.items():
        if not any(_leaves_open(n) for n in post_order(function.body)):
            found[name] = function
            continue
        body = _named(function)
        lifted: dict[str, Function] = {}
        body = rewrite(body, lambda n, lifted=lifted: _lifted(n, names, lifted))
        found[name] = replace(function, body=body)
        found |= lifted
    return found


def _leaves_open(node: Expr) -> bool:
    types = (p.ty for p in node.params if p.ty is not None) if isinstance(node, Function) else ()
    return any(UNKNOWN_DIM in dims(ty) for ty in types)


def _named(function: Function) -> Expr:
    """Return the body of a function with a name for each open size of its local functions."""
    bound = (v for n in post_order(function) for v in bound_vars(n))
    taken = {name for v in bound if v.ty is not None for name in dim_names(v.ty)}
    fresh = (DimVar(f"d{i}") for i in count() if f"d{i}" not in taken)

    def named(node: Expr) -> Expr:
        if not isinstance(node, Function) or not _leaves_open(node):
            return node
        own: list[TypeParam] = []

        def size(dim: Dim) -> Dim:
            if dim != UNKNOWN_DIM:
                return dim
            own.append(next(fresh))
            return Dim.of(own[-1].name)

        params = {
            p: p if p.ty is None else replace(p, ty=map_type(p.ty, lambda _: None, size))
            for p in node.params
        }
        return replace(
            node,
            params=tuple(params.values()),
            body=substitute(node.body, params),
            type_params=(*node.type_params, *own),
        )

    return rewrite(function.body, named)


def _lifted(node: Expr, names: Names, lifted: dict[str, Function]) -> Expr:
    """Return a block of functions that call themselves without those that became global."""
    if not isinstance(node, LetBlock) or node.flavour is not Flavour.REC:
        return node
    functions = {b.var: b.value for b in node.bindings if isinstance(b.value, Function)}
    if len(functions) < len(node.bindings) or not any(f.type_params for f in functions.values()):
        return node
    free = dict.fromkeys(v for f in functions.values() for v in free_vars(f))
    captured = [v for v in free if v not in functions]
    if not all(_is_known(v.ty) for v in captured) or not _are_called(functions, node):
        return node
    globals_ = {v: GlobalVar(names.fresh(v.name), span=v.span) for v in functions}

    def called(expr: Expr) -> Expr:
        if not isinstance(expr, Call) or expr.callee not in globals_:
            return expr
        assert isinstance(expr.callee, Var)
        return replace(expr, callee=globals_[expr.callee], args=(*captured, *expr.args))

    for var, function in functions.items():
        inside = {v: replace(v) for v in captured}
        body = substitute(rewrite(function.body, called), inside)
        params = (*inside.values(), *function.params)
        own = dict.fromkeys(p for v in params if v.ty is not None for p in _params_in(v.ty))
        lifted[globals_[var].name] = replace(
            function, params=params, body=body, type_params=tuple(own)
        )
    return rewrite(node.body, called)


def _is_known(ty: Type | None) -> bool:
    if ty is None or any(isinstance(part, TypeHole) for part in subtypes(ty)):
        return False
    return not any(dim.has_holes() for dim in dims(ty))


def _are_called(functions: Mapping[Var, Function], block: LetBlock) -> bool:
    """Return whether each mention of the functions is a call."""
    mentions = sum(n in functions for n in post_order(block) if isinstance(n, Var))
    calls = (n.callee for n in post_order(block) if isinstance(n, Call))
    return mentions == sum(c in functions for c in calls if isinstance(c, Var))


def _params_in(ty: Type) -> list[TypeParam]:
    found: list[TypeParam] = []
    for dim in dims(ty):
        found += (a for a in dim.atoms() if not isinstance(a, DimHole))
    return [*found, *(part for part in subtypes(ty) if isinstance(part, TypeVar))]
