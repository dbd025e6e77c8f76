"""Functions whose statements nest only as deep as Python takes them.

What stands deeper becomes a local function at the head of the function, of all that it uses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, final

from ..ir.expr import Binding, Call, Clause, Expr, Function, If, LetBlock, Match, Var, type_of
from ..ir.traverse import Steps, free_vars, let, run, spine, substitute
from ..ir.types import FnType

_DEEPEST: Final = 40
"""How deep statements nest; Python's own limit is 100 levels of indentation."""


def shallow(function: Function) -> Function:
    """Return a function in A-normal form with what nests deep as local functions."""
    parts = _Parts()
    body = run(parts.body(function.body, 1, in_tail=True))
    return replace(function, body=let(parts.made, body))


@final
class _Parts:
    """The parts of one function that became functions, inner ones first."""

    def __init__(self) -> None:
        self.made: Final[list[Binding]] = []
        self._names: Final[set[Var]] = set()

    def body(self, body: Expr, depth: int, *, in_tail: bool) -> Steps[Expr]:
        """Return a body whose statements stand at a depth."""
        blocks, end = spine(body)
        found: list[LetBlock] = []
        for block in blocks:
            bindings: list[Binding] = []
            for binding in block.bindings:
                value = yield self._value(binding.value, depth)
                bindings.append(Binding(binding.var, value))
            found.append(replace(block, bindings=tuple(bindings)))
        if in_tail and isinstance(end, If):  # Python returns from the first arm and goes on
            then = yield self._inside(end.then, depth + 1, in_tail=True)
            otherwise = yield self.body(end.otherwise, depth, in_tail=True)
            end = replace(end, then=then, otherwise=otherwise)
        else:
            end = yield self._value(end, depth, in_tail=in_tail)
        for block in reversed(found):
            end = replace(block, body=end)
        return end

    def _value(self, value: Expr, depth: int, *, in_tail: bool = False) -> Steps[Expr]:
        match value:
            case Function():
                inside = yield self._inside(value.body, depth + 1, in_tail=True)
                return replace(value, body=inside)
            case If():
                then = yield self._inside(value.then, depth + 1, in_tail=in_tail)
                otherwise = yield self._inside(value.otherwise, depth + 1, in_tail=in_tail)
                return replace(value, then=then, otherwise=otherwise)
            case Match():
                clauses: list[Clause] = []
                for clause in value.clauses:
                    arm = yield self._inside(clause.body, depth + 2, in_tail=in_tail)
                    clauses.append(replace(clause, body=arm))
                return replace(value, clauses=tuple(clauses))
            case _:
                return value

    def _inside(self, body: Expr, depth: int, *, in_tail: bool) -> Steps[Expr]:
        """Return an arm, or the body of a function; where it stands too deep as a call."""
        if depth < _DEEPEST or _is_flat(body):
            return (yield self.body(body, depth, in_tail=in_tail))
        inside = yield self.body(body, 2, in_tail=True)
        given = [v for v in free_vars(inside) if v not in self._names]
        params = {v: replace(v) for v in given}
        ty = FnType(tuple(type_of(v) for v in given), type_of(body))
        made = substitute(inside, params)
        span = body.span
        function = Function(tuple(params.values()), made, ty.result, name="part", ty=ty, span=span)
        name = Var("part", ty, span=span)
        self._names.add(name)
        self.made.append(Binding(name, function))
        return Call(name, tuple(given), ty=ty.result, span=span)


def _is_flat(body: Expr) -> bool:
    """Return whether nothing nests in a body."""
    blocks, end = spine(body)
    values = [b.value for block in blocks for b in block.bindings]
    return not any(isinstance(v, If | Match | Function) for v in (end, *values))
