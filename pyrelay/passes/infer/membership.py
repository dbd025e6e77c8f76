"""`x in xs`: a loop over a list, a test for each field of a tuple, or an operator of strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...ir.dims import Dim
from ...ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    Constant,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Match,
    TupleGet,
    Var,
    Wildcard,
)
from ...ir.op import Clash, Stuck
from ...ir.ops.text import contains_text
from ...ir.types import BOOL, AdtType, StrType, TupleType, Type, TypeHole, show
from ...prelude.library import LIST
from .equality import compared

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
    value, items = pair
    wanted, ty = types[0], solver.shallow(types[1])
    yes, no = Constant(True, span=span), Constant(False, span=span)
    match ty:
        case TypeHole():
            raise Stuck(ty)
        case StrType():
            return Call(contains_text, pair, span=span)
        case TupleType(fields):
            found: Expr = no
            for place in reversed(range(len(fields))):
                field = Var("field", span=span)
                test = compared((field, value), (fields[place], wanted), solver, adts, span)
                chosen = If(test, Constant(True, span=span), found, span=span)
                bound = (Binding(field, TupleGet(items, place, span=span)),)
                found = LetBlock(bound, chosen, Flavour.PURE, span=span)
            return found
        case AdtType(name, (element,)) if name == LIST and not isinstance(element, Dim):
            loop, rest = Var("contains_loop", span=span), Var("rest", ty, span=span)
            head, tail = Var("head", span=span), Var("tail", span=span)
            test = compared((head, value), (element, wanted), solver, adts, span)
            bound_fields = (BindPattern(head, span=span), BindPattern(tail, span=span))
            clauses = (
                Clause(
                    ConstructorPattern(LIST, "Cons", bound_fields, span=span),
                    If(test, yes, Call(loop, (tail,), span=span), span=span),
                ),
                Clause(Wildcard(span=span), no),
            )
            body = Match(rest, clauses, span=span)
            function = Function((rest,), body, BOOL, name=loop.name, span=span)
            searched = Call(loop, (items,), span=span)
            return LetBlock((Binding(loop, function),), searched, Flavour.REC, span=span)
        case _:
            raise Clash(
                "`in` searches lists, tuples and strings",
                labels={1: f"this is {show(solver.resolve(ty))}"},
                help="of a tensor: `bool(relay.any(xs == x))`",
            )
