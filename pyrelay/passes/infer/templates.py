"""Let-polymorphism by copying: a local function whose parameters have no types, or types with
parameters of their own, called from several places, gets one copy a place, so each may be inferred
at types of its own.

Only functions that are never mentioned but to be called are copied; one that is passed around is
monomorphic. A bound on the number of copies keeps nested templates from exploding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeGuard, final

from ...ir.expr import Binding, Call, Expr, Function, LetBlock, Var
from ...ir.traverse import Steps, children, post_order, rebuild, refresh, run, substitute

_ROUNDS: Final = 4
_LIMIT: Final = 64


def copy_templates(function: Function) -> Function:
    """Give the function with local untyped functions copied for each place that calls them."""
    for _ in range(_ROUNDS):
        templates = _templates(function)
        if not templates:
            return function
        copied = run(_Copier(templates).walk(function))
        assert isinstance(copied, Function)
        function = copied
    return function


def _templates(function: Function) -> dict[Var, int]:
    """Give the local functions to copy, with the number of places outside that call them."""
    names = {n.bindings[0].value: n.bindings[0].var for n in post_order(function) if _is_local(n)}
    if not names:
        return {}
    mentioned: Counter[Var] = Counter()
    called: Counter[Var] = Counter()
    own: dict[Var, int] = {}
    for node in post_order(function):
        match node:
            case Function() if node in names:
                # Its body has just been walked, and where it is in scope has not.
                own[names[node]] = called[names[node]]
            case Var():
                mentioned[node] += 1
            case Call(Var() as callee):
                called[callee] += 1
            case _:
                pass
    outside = {var: called[var] - count for var, count in own.items()}
    return {
        var: count
        for var, count in outside.items()
        if mentioned[var] == called[var] and 1 < count <= _LIMIT
    }


def _is_local(expr: Expr) -> TypeGuard[LetBlock]:
    """Tell whether an expression binds one local function that could be a template."""
    match expr:
        case LetBlock((Binding(value=Function(params, type_params=own)),)):
            return bool(own) or any(p.ty is None for p in params)
        case _:
            return False


@final
class _Copier:
    """Gives every place outside that calls a template a copy of its own.

    Top down, so that it is known inside of which templates a call stands: those it makes to them
    are recursive, and stay within a copy.
    """

    def __init__(self, templates: Mapping[Var, int]) -> None:
        self._copies: Final = {v: [replace(v) for _ in range(n)] for v, n in templates.items()}
        self._unused: Final = {v: iter(copies) for v, copies in self._copies.items()}
        self._inside: Final[set[Var]] = set()

    def walk(self, expr: Expr) -> Steps[Expr]:
        """Give the expression with its templates copied."""
        match expr:
            case LetBlock((Binding(var, value),)) if var in self._copies:
                return (yield self._block(expr, var, value))
            case _:
                return (yield self._node(expr))

    def _node(self, expr: Expr) -> Steps[Expr]:
        inside: list[Expr] = []
        for child in children(expr):
            inside += ((yield self.walk(child)),)
        built = rebuild(expr, inside)
        if isinstance(built, Call) and isinstance(built.callee, Var):
            return self._call(built, built.callee)
        return built

    def _call(self, call: Call, callee: Var) -> Call:
        if callee not in self._copies or callee in self._inside:
            return call
        return replace(call, callee=next(self._unused[callee]))

    def _block(self, block: LetBlock, var: Var, value: Expr) -> Steps[Expr]:
        self._inside.add(var)
        template = yield self.walk(value)
        self._inside.remove(var)
        body = yield self.walk(block.body)
        for copy in reversed(self._copies[var]):
            own = substitute(refresh(template), {var: copy})
            body = replace(block, bindings=(Binding(copy, own),), body=body)
        return body
