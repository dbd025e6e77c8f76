"""Copies of expressions under new variables, so that no variable is bound in two functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from ...ir.expr import (
    Binding,
    Clause,
    Expr,
    Flavour,
    Function,
    LetBlock,
    Match,
    Pattern,
    Var,
    type_of,
)
from ...ir.traverse import Steps, children, map_pattern, rebuild

if TYPE_CHECKING:
    from ...ir.names import Names
    from ...ir.types import Type


@final
class Copier:
    """Copies into one new function; `env` maps variables of the old ones to their replacements."""

    def __init__(self, names: Names) -> None:
        self.names: Final = names
        self.env: Final[dict[Var, Expr]] = {}

    def fresh(self, var: Var, ty: Type | None = None) -> Var:
        """Return a new variable that stands for an old one from here on."""
        hint = var.name.rstrip("0123456789")
        hint = hint[:-1] if hint != var.name and hint.endswith("_") else var.name
        new = Var(self.names.fresh(hint or "t"), type_of(var) if ty is None else ty, span=var.span)
        self.env[var] = new
        return new

    def atom(self, expr: Expr) -> Expr:
        """Return the replacement of an atom."""
        return self.env.get(expr, expr) if isinstance(expr, Var) else expr

    def copy(self, expr: Expr) -> Steps[Expr]:
        """Return a copy of an expression."""
        match expr:
            case LetBlock():
                return (yield self._let(expr))
            case Match(value, clauses):
                copied: list[Clause] = []
                for clause in clauses:
                    new_clause = yield self._clause(clause)
                    copied.append(new_clause)
                return replace(expr, value=self.atom(value), clauses=tuple(copied))
            case Function(params, body):
                new = tuple(self.fresh(p) for p in params)
                return replace(expr, params=new, body=(yield self.copy(body)))
            case _:
                inside: list[Expr] = []
                for child in children(expr):
                    plain = isinstance(child, Var) or not children(child)
                    inside.append(self.atom(child) if plain else (yield self.copy(child)))
                return self.atom(expr) if isinstance(expr, Var) else rebuild(expr, inside)

    def _let(self, expr: LetBlock) -> Steps[Expr]:
        blocks: list[LetBlock] = []
        body: Expr = expr
        while isinstance(body, LetBlock):
            bound: list[Binding] = []
            recursive = body.flavour is Flavour.REC
            names = [self.fresh(b.var) for b in body.bindings] if recursive else []
            for index, binding in enumerate(body.bindings):
                value = yield self.copy(binding.value)
                var = names[index] if recursive else self.fresh(binding.var)
                bound.append(Binding(var, value))
            blocks.append(replace(body, bindings=tuple(bound)))
            body = body.body
        result = yield self.copy(body)
        for block in reversed(blocks):
            result = replace(block, body=result)
        return result

    def _clause(self, clause: Clause) -> Steps[Clause]:
        pattern = self.pattern(clause.pattern)
        guard = None if clause.guard is None else (yield self.copy(clause.guard))
        return Clause(pattern, (yield self.copy(clause.body)), guard)

    def pattern(self, pattern: Pattern) -> Pattern:
        """Return the pattern with new variables."""
        return map_pattern(pattern, self.fresh)
