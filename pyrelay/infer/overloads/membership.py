"""`x in xs`: a loop over a list, a test for each field of a tuple, or an operator of strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, final

from ...dataclass import dataclass
from ...diagnostics.source import Construct, Span
from ...ir.expr import Binding, Call, Constant, Expr, Flavour, Function, If, LetBlock, TupleGet, Var
from ...ir.op import Clash
from ...ir.types import BOOL, INT, StrType, TupleType, Type, show
from ...operators.host.failing import fail
from ...operators.host.text import contains_text
from ...operators.primitive.arithmetic import add
from ...prelude.library import element_of
from .equality import compared
from .sites import ReadCall, split

if TYPE_CHECKING:
    from ...ir.module import AdtDef
    from ..solver import Solver


def membership(at: ReadCall, adts: Mapping[str, AdtDef]) -> Expr:
    """Return whether the second operand of a call has an element equal to the first. Raises Stuck
    while a type is not known, and Clash."""
    search = _Search(at.operand(0), at.types[0], at.solver, adts, at.span)
    items, ty = at.operand(1), at.solver.known(at.types[1])
    match ty:
        case StrType():
            return at.call(contains_text, search.value, items)
        case TupleType(fields):
            return search.in_tuple(items, fields)
        case _ if (element := element_of(ty)) is not None:
            return search.in_list(items, ty, element)
        case _:
            raise Clash(
                "`in` searches lists, tuples and strings",
                labels={1: f"this is {show(at.solver.resolve(ty))}"},
                help="of a tensor: `bool(relay.any(xs == x))`",
            )


def counted(at: ReadCall, adts: Mapping[str, AdtDef], name: str, *, stops: bool) -> Expr:
    """Return how many elements of a list, the first operand of a call, are equal to the second; if
    it `stops`, how many come before the first of them, without which the program fails. Raises
    Stuck and Clash."""
    items, ty = at.operand(0), at.types[0]
    element = element_of(at.solver.known(ty))
    if element is None:
        shown = show(at.solver.resolve(ty))
        raise Clash(f"`{name}` is a method of lists", labels={0: f"this is {shown}"})
    search = _Search(at.operand(1), at.types[1], at.solver, adts, at.span)
    return search.counted(items, ty, element, stops=stops)


@final
@dataclass(frozen=True, slots=True)
class _Search:
    """The value that is searched for, and the code of its comparison."""

    value: Expr
    type: Type
    solver: Solver
    adts: Mapping[str, AdtDef]
    span: Span

    def in_tuple(self, items: Expr, fields: Sequence[Type]) -> Expr:
        """Return the comparisons with one field after the other, up to the first that is equal."""
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
        """Return the loop over a list that ends at the first element that is equal."""
        span = self.span
        loop = Var("contains_loop", span=span.desugared(Construct.LOOP))
        rest = Var("rest", ty, span=span)

        def step(head: Var, tail: Var) -> Expr:
            again = Call(loop, (tail,), span=span)
            return If(self._is_equal(head, element), Constant(True, span=span), again, span=span)

        body = split(rest, step, Constant(False, span=span), span)
        function = Function((rest,), body, BOOL, name=loop.name, span=span)
        searched = Call(loop, (items,), span=span)
        return LetBlock((Binding(loop, function),), searched, Flavour.REC, span=span)

    def counted(self, items: Expr, ty: Type, element: Type, *, stops: bool) -> Expr:
        """Return the loop over a list that counts elements: those before the first that is equal,
        or those that are equal."""
        span = self.span
        loop = Var("search_loop", span=span.desugared(Construct.LOOP))
        rest, count = Var("rest", ty, span=span), Var("count", INT, span=span)

        def step(head: Var, tail: Var) -> Expr:
            more = Call(add, (count, Constant(1, span=span)), {}, span=span)
            found = count if stops else Call(loop, (tail, more), span=span)
            on = Call(loop, (tail, more if stops else count), span=span)
            return If(self._is_equal(head, element), found, on, span=span)

        none: Expr = count
        if stops:
            none = Call(fail, (), {"message": "the value is not in the list"}, span=span)
        body = split(rest, step, none, span)
        function = Function((rest, count), body, INT, name=loop.name, span=span)
        start = Call(loop, (items, Constant(0, INT, span=span)), span=span)
        return LetBlock((Binding(loop, function),), start, Flavour.REC, span=span)

    def _is_equal(self, item: Var, ty: Type) -> Expr:
        return compared((item, self.value), (ty, self.type), self.solver, self.adts, self.span)
