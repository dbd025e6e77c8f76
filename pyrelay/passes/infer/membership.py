"""`x in xs`: a loop over a list, a test for each field of a tuple, or an operator of strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ...ir.dims import Dim
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    TupleGet,
    Var,
)
from ...ir.op import Clash, Stuck
from ...ir.ops.text import contains_text
from ...ir.types import BOOL, AdtType, StrType, TupleType, Type, TypeHole, show
from ...prelude.library import LIST
from .equality import compared
from .sites import split

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ...ir.module import AdtDef
    from .solver import Solver


def membership(
    pair: tuple[Expr, Expr],
    types: tuple[Type, Type],
    solver: Solver,
    adts: Mapping[str, AdtDef],
    span: Span,
) -> Expr:
    """Give whether the second of two atoms has an element equal to the first. Raises Stuck while a
    type is not known, and Clash."""
    ty = solver.shallow(types[1])
    search = _Search(pair[0], types[0], solver, adts, span)
    match ty:
        case TypeHole():
            raise Stuck(ty)
        case StrType():
            return Call(contains_text, pair, span=span)
        case TupleType(fields):
            return search.in_tuple(pair[1], fields)
        case AdtType(name, (element,)) if name == LIST and not isinstance(element, Dim):
            return search.in_list(pair[1], ty, element)
        case _:
            raise Clash(
                "`in` searches lists, tuples and strings",
                labels={1: f"this is {show(solver.resolve(ty))}"},
                help="of a tensor: `bool(relay.any(xs == x))`",
            )


@final
@dataclass(frozen=True, slots=True)
class _Search:
    """What is searched for, and what comparing takes."""

    value: Expr
    type: Type
    solver: Solver
    adts: Mapping[str, AdtDef]
    span: Span

    def in_tuple(self, items: Expr, fields: Sequence[Type]) -> Expr:
        """Give the comparisons with one field after the other, up to the first that is equal."""
        span = self.span
        found: Expr = Constant(False, span=span)
        for place in reversed(range(len(fields))):
            field = Var("field", span=span)
            test = self._is_equal(field, fields[place])
            chosen = If(test, Constant(True, span=span), found, span=span)
            bound = (Binding(field, TupleGet(items, place, span=span)),)
            found = LetBlock(bound, chosen, Flavour.PURE, span=span)
        return found

    def in_list(self, items: Expr, ty: Type, element: Type) -> Expr:
        """Give the loop over a list that ends at the first element that is equal."""
        span = self.span
        loop, rest = Var("contains_loop", span=span), Var("rest", ty, span=span)

        def step(head: Var, tail: Var) -> Expr:
            again = Call(loop, (tail,), span=span)
            return If(self._is_equal(head, element), Constant(True, span=span), again, span=span)

        body = split(rest, step, Constant(False, span=span), span)
        function = Function((rest,), body, BOOL, name=loop.name, span=span)
        searched = Call(loop, (items,), span=span)
        return LetBlock((Binding(loop, function),), searched, Flavour.REC, span=span)

    def _is_equal(self, item: Var, ty: Type) -> Expr:
        return compared((item, self.value), (ty, self.type), self.solver, self.adts, self.span)
