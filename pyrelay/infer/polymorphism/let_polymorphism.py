"""Let-polymorphism by copying: a local function whose parameters have no types, or types with
parameters of their own, mentioned in several places, gets one copy a place, so each may be inferred
at types of its own.

Only functions that are called and passed to functions are copied: these places determine the types.
One that is a result, or stands in a tuple, is monomorphic. A bound on the number of copies keeps
nested templates from exploding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, final

from ...ir.expr import Binding, Call, Expr, Flavour, Function, LetBlock, Var
from ...ir.op import Op
from ...ir.traverse import Steps, children, post_order, rebuild, refresh, rewrite, run, substitute
from ...ir.types import open_shapes

_ROUNDS: Final = 4
_LIMIT: Final = 64


def copy_templates(function: Function) -> Function:
    """Return the function with local untyped functions copied for each place that mentions them."""
    for _ in range(_ROUNDS):
        templates = _templates(function)
        if not templates:
            return function
        copied = run(_Copier(templates).walk(function))
        assert isinstance(copied, Function)
        function = copied
    return function


def _templates(function: Function) -> dict[Var, int]:
    """Return the local functions to copy, with the number of places outside that mention them."""
    names = {b.value: b.var for n in post_order(function) for b in _local(n)}
    if not names:
        return {}
    mentioned: Counter[Var] = Counter()
    passed: Counter[Var] = Counter()
    own: dict[Var, int] = {}
    for node in post_order(function):
        match node:
            case Function() if node in names:
                # Its body has just been walked, and where it is in scope has not.
                own[names[node]] = mentioned[names[node]]
            case Var():
                mentioned[node] += 1
            case Call(callee, args) if not isinstance(callee, Op):
                passed.update(part for part in (callee, *args) if isinstance(part, Var))
            case _:
                pass
    outside = {var: mentioned[var] - count for var, count in own.items()}
    return {
        var: count
        for var, count in outside.items()
        if mentioned[var] == passed[var] and 1 < count <= _LIMIT
    }


def _local(expr: Expr) -> Iterator[Binding]:
    """Return the bindings of local functions that could be templates."""
    if not isinstance(expr, LetBlock) or (expr.flavour is Flavour.REC and len(expr.bindings) > 1):
        return
    for binding in expr.bindings:
        match binding.value:
            case Function(params, type_params=own) if own or any(map(_is_open, params)):
                yield binding
            case _:
                pass


def _is_open(param: Var) -> bool:
    return param.ty is None or bool(open_shapes(param.ty))


@final
class _Copier:
    """Makes a copy of a template for every place outside that mentions it.

    Top down, so that it is known inside of which templates a place stands: its mentions of them
    are recursive, and stay within a copy.
    """

    def __init__(self, templates: Mapping[Var, int]) -> None:
        self._copies: Final = {v: [replace(v) for _ in range(n)] for v, n in templates.items()}
        self._unused: Final = {v: iter(copies) for v, copies in self._copies.items()}
        self._inside: Final[set[Var]] = set()

    def walk(self, expr: Expr) -> Steps[Expr]:
        """Return the expression with its templates copied."""
        match expr:
            case LetBlock() if any(b.var in self._copies for b in expr.bindings):
                return (yield self._block(expr))
            case Var() if expr in self._copies and expr not in self._inside:
                return next(self._unused[expr])
            case _:
                return (yield self._node(expr))

    def _node(self, expr: Expr) -> Steps[Expr]:
        inside: list[Expr] = []
        for child in children(expr):
            inside += ((yield self.walk(child)),)
        return rebuild(expr, inside)

    def _block(self, block: LetBlock) -> Steps[Expr]:
        if block.flavour is Flavour.REC:
            (binding,) = block.bindings
            return (yield self._recursive(block, binding))
        bindings: list[Binding] = []
        for binding in block.bindings:
            value = yield self.walk(binding.value)
            bindings += self._bindings(binding.var, value)
        body = yield self.walk(block.body)
        return replace(block, bindings=tuple(bindings), body=body)

    def _bindings(self, var: Var, value: Expr) -> list[Binding]:
        copies = self._copies.get(var)
        if copies is None:
            return [Binding(var, value)]
        return [Binding(copy, _copied(value)) for copy in copies]

    def _recursive(self, block: LetBlock, binding: Binding) -> Steps[Expr]:
        self._inside.add(binding.var)
        template = yield self.walk(binding.value)
        self._inside.remove(binding.var)
        body = yield self.walk(block.body)
        for copy in reversed(self._copies[binding.var]):
            own = substitute(_copied(template), {binding.var: copy})
            body = replace(block, bindings=(Binding(copy, own),), body=body)
        return body


def _copied(template: Expr) -> Expr:
    """Return a copy that shares no node with the template: what types and sizes of its own stand
    for differs between copies."""
    return rewrite(refresh(template), lambda n: n if isinstance(n, Var) else replace(n))
