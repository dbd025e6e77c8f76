"""Escape analysis: the variables whose elements live until the call from Python has ended, as data
may hold them.

What a round of a loop computes is forgotten when the round is over, but for the tensors that the
loop carries, which are copied. Data, such as the list of what a loop saves for its gradient, holds
addresses, so what it holds is made in other memory in the first place, and is never copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, final

from ...ir.expr import (
    Call,
    Constructor,
    Expr,
    Function,
    If,
    LetBlock,
    Match,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.traverse import post_order
from ...ir.types import TupleType, Type
from ...kernels.function_plan import FunctionPlan, Planned
from .c_types import is_tensor
from .views import is_alias, row_of


@final
class Escapes:
    """The variables and the results of functions that escape into data, in a whole program."""

    def __init__(self, plan: FunctionPlan) -> None:
        self._plan: Final = plan
        self._values: Final[dict[Var, Expr]] = {}
        self._args: Final[dict[Var, list[Expr]]] = {}
        self._found: Final[set[Var | Planned]] = set()
        self._pending: Final[list[Var | Planned]] = []
        stored: list[Expr] = []
        self._rows: Final[dict[Var, Var]] = {}
        for planned in plan.functions():
            row = row_of(planned.function)
            if row is not None:
                self._rows[row.value] = row.source
            for node in post_order(planned.function.body):
                if isinstance(node, LetBlock):
                    self._values.update((b.var, b.value) for b in node.bindings)
                elif isinstance(node, Call):
                    stored += self._note(node)
        self._add(stored)
        while self._pending:
            self._add(self._sources(self._pending.pop()))

    def has(self, place: Var | Planned) -> bool:
        """Return whether a variable escapes, or the result of a function."""
        return place in self._found

    def is_result_apart(self, planned: Planned) -> bool:
        """Return whether no tensor in the result of a function lies in memory that is forgotten:
        all escape, or there is none."""
        pending = list(_ends(planned.function.body))
        while pending:
            end = pending.pop()
            is_again = isinstance(end, Call) and self._plan.callee(end) is planned
            if is_again or end in self._found or not has_tensors(type_of(end)):
                continue
            value = self._values.get(end) if isinstance(end, Var) else None
            if not isinstance(value, Tuple):
                return False
            pending += value.fields
        return True

    def _note(self, call: Call) -> Iterable[Expr]:
        """Note the arguments of a call of a function; return the fields of data that it makes."""
        if isinstance(call.callee, Constructor):
            return call.args
        callee = self._plan.callee(call)
        if callee is not None:
            for param, arg in zip(callee.function.params, call.args, strict=True):
                self._args.setdefault(param, []).append(arg)
        return ()

    def _add(self, values: Iterable[Expr]) -> None:
        for value in values:
            place = self._plan.callee(value) if isinstance(value, Call) else value
            if isinstance(place, Var | Planned) and place not in self._found:
                self._found.add(place)
                self._pending.append(place)

    def _sources(self, place: Var | Planned) -> Iterator[Expr]:
        """Yield the variables and calls whose elements a place has."""
        if isinstance(place, Planned):
            yield from _ends(place.function.body)
            return
        yield from self._args.get(place, ())
        if place in self._rows:
            yield self._rows[place]
        value = self._values.get(place)
        match value:
            case None | Function():
                return
            case Tuple(fields):
                yield from fields
            case TupleGet(whole, _):
                yield whole
            case Call(args=(source,)) if is_alias(value):
                yield source
            case _:
                yield from _ends(value)


def has_tensors(ty: Type) -> bool:
    """Return whether a value of a type is a tensor, or a tuple that has some; what data hold lies
    on the heap."""
    if isinstance(ty, TupleType):
        return any(map(has_tensors, ty.fields))
    return is_tensor(ty)


def _ends(body: Expr) -> Iterator[Expr]:
    """Yield the expressions one of which is the value of a body."""
    pending = [body]
    while pending:
        match pending.pop():
            case LetBlock(body=inner):
                pending.append(inner)
            case If(_, then, otherwise):
                pending += (then, otherwise)
            case Match(clauses=clauses):
                pending += (clause.body for clause in clauses)
            case Tuple(fields):
                pending += fields
            case TupleGet(whole, _):
                pending.append(whole)
            case end:
                yield end
