"""From functions with a derivative of their own to ruled functions.

The function and its rules may be any functions whose code is at hand. Their captures become leading
parameters of all of them.
"""

from __future__ import annotations

from dataclasses import replace

from ...diagnostics.source import Span
from ...ir.expr import (
    Binding,
    Call,
    Expr,
    Flavour,
    GlobalVar,
    LetBlock,
    Transform,
    Var,
    function_type,
    type_of,
)
from ...ir.names import Names
from ...ir.types import FnType
from ..deriving.copying import Copier
from .lifting import KnownFunction, Lifter


def settled(lifter: Lifter, transform: Transform) -> KnownFunction:
    """Return the ruled function for a transform of functions known here. Raises NotLocal."""
    parts = (transform.function, *transform.rules)
    known = [lifter.resolve(part, type_of(part)) for part in parts]
    captures = tuple(dict.fromkeys(atom for each in known for atom in each.captures))
    globals_ = [_with_captures(lifter, p, k, captures) for p, k in zip(parts, known, strict=True)]
    own = function_type(transform)
    span, count = transform.span, len(captures)
    params = _fresh(Copier(Names()), captures, own, span)
    ty = FnType(tuple(type_of(p) for p in params), own.result)
    function, *rules = globals_
    made = replace(
        transform, function=function, rules=tuple(rules), captures=transform.captures + count, ty=ty
    )
    var = Var("own", ty, span=span)
    call = Call(var, params, ty=own.result, span=span)
    body = LetBlock((Binding(var, made),), call, Flavour.PURE, ty=own.result, span=span)
    name = lifter.define(f"{function.name}.ruled", params, body)
    return KnownFunction(name, captures, tuple(binding for each in known for binding in each.sizes))


def _with_captures(
    lifter: Lifter, part: Expr, known: KnownFunction, captures: tuple[Expr, ...]
) -> GlobalVar:
    """Return a function that takes all of the captures first."""
    own = function_type(part)
    name = known.name
    if known.captures != captures:
        copier = Copier(Names())
        params = _fresh(copier, captures, own, part.span)
        passed = replace(known, captures=tuple(copier.atom(c) for c in known.captures))
        call = lifter.call(passed, params[len(captures) :], own.result, part.span)
        name = lifter.define(known.name, params, call)
    taken = tuple(type_of(c) for c in captures)
    return GlobalVar(name, FnType((*taken, *own.params), own.result), span=part.span)


def _fresh(copier: Copier, captures: tuple[Expr, ...], own: FnType, span: Span) -> tuple[Var, ...]:
    """Return new parameters for captures and for a function's own arguments."""
    leading = [copier.fresh(c) for c in captures if isinstance(c, Var)]
    names = copier.names
    return (*leading, *(Var(names.fresh(f"x{i}"), t, span=span) for i, t in enumerate(own.params)))
