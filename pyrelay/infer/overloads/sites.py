"""A call that is being read as what it means: its operands as atoms, and what its reading is made
of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, final

from ...diagnostics.source import Span
from ...ir.dims import Dim
from ...ir.expr import (
    BindPattern,
    Call,
    Clause,
    Constant,
    ConstructorPattern,
    Expr,
    GlobalVar,
    Match,
    Tuple,
    Var,
    Wildcard,
)
from ...ir.nested import map_nested
from ...ir.op import Op
from ...ir.types import Type
from ...operators.host.failing import no_element
from ...prelude.library import LIST, qualified
from ..operators import OperatorCall
from ..solver import Solver


@final
class ReadCall:
    """One call being read."""

    def __init__(self, call: OperatorCall, solver: Solver) -> None:
        self.solver: Final = solver
        self.span: Final[Span] = call.call.span
        self.types: Final = call.types
        self.attrs: Final = call.call.attrs
        self.operands: Final[dict[Var, Expr]] = {}
        self._call: Final = call
        self._given: Final = call.call.args

    def operand(self, position: int) -> Expr:
        """Return an operand."""
        return self.value(self._given[position])

    def value(self, expr: Expr) -> Expr:
        """Return an expression of the call as an atom of its reading."""
        for var, known in self.operands.items():
            if known is expr:
                return var
        name = expr.name if isinstance(expr, Var) else ""
        var = Var(name or "value", span=expr.span)
        self.operands[var] = expr
        return var

    def attribute(self, name: str) -> Any:
        """Return an attribute, what the running program knows of it as atoms."""
        return map_nested(self.attrs[name], self._stated)

    def _stated(self, value: Any) -> Any:
        if isinstance(value, Dim):
            return self._call.own.dim(value)
        return self.value(value) if isinstance(value, Expr) else value

    def attribute_type(self, value: Expr) -> Type:
        """Return the type of an attribute that the running program knows."""
        return self.solver.resolve(self._call.attr_types[value])

    def indices(self) -> tuple[Expr, ...]:
        """Return the run-time indices of an indexing operator."""
        inside = self._given[1]
        assert isinstance(inside, Tuple)
        return inside.fields

    def call(self, callee: Op | str, *args: Expr, **attrs: Any) -> Expr:
        """Return a call of an operator, or of a function of the prelude."""
        if isinstance(callee, str):
            return Call(GlobalVar(qualified(callee), span=self.span), args, span=self.span)
        return Call(callee, args, attrs, span=self.span)

    def unit(self) -> Expr:
        """Return an operand that is left out."""
        return Tuple((), span=self.span)

    def number(self, value: int) -> Expr:
        """Return a number."""
        return Constant(value, span=self.span)

    def split(self, xs: Expr, some: Callable[[Var, Var], Expr], none: Expr) -> Expr:
        """Return a match on whether a list has a first element."""
        return split(xs, some, none, self.span)


Reader: TypeAlias = Callable[[ReadCall], Expr]
"""The meaning of a call that is read."""


def split(xs: Expr, some: Callable[[Var, Var], Expr], none: Expr, span: Span) -> Expr:
    """Return a match on whether a list has a first element: `some` of it and the rest, or
    `none`."""
    head, tail = Var("head", span=span), Var("tail", span=span)
    fields = (BindPattern(head, span=span), BindPattern(tail, span=span))
    cons = ConstructorPattern(LIST, "Cons", fields, span=span)
    clauses = (Clause(cons, some(head, tail)), Clause(Wildcard(span=span), none))
    return Match(xs, clauses, span=span)


def nothing(site: ReadCall) -> Expr:
    """Stop the program: the list is empty."""
    return site.call(no_element, site.number(0), site.number(0))
