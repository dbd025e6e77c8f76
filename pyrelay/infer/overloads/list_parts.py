"""Unpacking of lists, and the order of elements in a sorted one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...ir.expr import (
    BindPattern,
    Call,
    Clause,
    Constant,
    ConstructorPattern,
    Expr,
    If,
    Match,
    Pattern,
    Tuple,
    TupleGet,
    Var,
    Wildcard,
)
from ...ir.op import Clash
from ...ir.types import BOOL, SizeType, TensorType, TupleType, Type, show
from ...operators.host.failing import fail
from ...operators.host.loop import is_before
from ...operators.primitive.compare import equal, less
from ...prelude.library import LIST

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ..solver import Solver


def elements_of(items: Expr, count: int, span: Span) -> Expr:
    """Return the elements of a list as a tuple; the program stops where it has more or fewer."""
    parts = tuple(Var("element", span=span) for _ in range(count))
    whole = _list_of([BindPattern(part, span=span) for part in parts], span)
    found = [Clause(whole, Tuple(parts, span=span))]
    for fewer in range(count):
        pattern = _list_of([Wildcard(span=span)] * fewer, span)
        found.append(Clause(pattern, _failure(str(fewer), fewer, count, span)))
    found.append(Clause(Wildcard(span=span), _failure(f"more than {count}", count, count, span)))
    return Match(items, tuple(found), span=span)


def _list_of(elements: Sequence[Pattern], span: Span) -> Pattern:
    """Return the pattern of a list of as many elements."""
    pattern: Pattern = ConstructorPattern(LIST, "Nil", (), span=span)
    for element in reversed(elements):
        pattern = ConstructorPattern(LIST, "Cons", (element, pattern), span=span)
    return pattern


def _failure(length: str, elements: int, names: int, span: Span) -> Expr:
    """Return the code that stops the program at a list of another length."""
    noun = "element" if elements == 1 else "elements"
    each = "name" if names == 1 else "names"
    message = f"a list of {length} {noun} cannot be unpacked into {names} {each}"
    return Call(fail, (), {"message": message}, span=span)


def comes_before(pair: tuple[Expr, Expr], ty: Type, solver: Solver, span: Span) -> Expr:
    """Return whether the first of two values of a type comes before the second: the smaller number,
    or the tuple whose first different field does. Raises Stuck and Clash."""
    found = solver.resolve(solver.known(ty))
    match found:
        case SizeType():
            return Call(less, pair, {}, span=span)
        case TensorType((), _) if found != BOOL:
            return Call(less, pair, {}, span=span)
        case TupleType(fields) if fields:
            return _lexicographic(pair, len(fields), span)
        case _:
            raise Clash(
                f"values of {show(found)} have no order",
                help="sort by numbers, or by tuples of them: `sorted(xs, key=f)`",
            )


def _lexicographic(pair: tuple[Expr, Expr], count: int, span: Span) -> Expr:
    found: Expr = Constant(False, span=span)
    for place in reversed(range(count)):
        first, second = (tuple(TupleGet(side, place, span=span) for side in pair) for _ in range(2))
        later = found if place == count - 1 else None
        before = Call(is_before, first, {}, span=span)
        if later is not None:
            found = before
            continue
        same = Call(equal, second, {}, span=span)
        otherwise = If(same, found, Constant(False, span=span), span=span)
        found = If(before, Constant(True, span=span), otherwise, span=span)
    return found
