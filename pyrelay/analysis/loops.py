"""Loops: what every round evaluates that goes on.

A *loop* is a function that calls itself, of which all calls are seen. Only what stands on the one
way from its start to the calls of itself is evaluated in every round that goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import final

from ..dataclass import dataclass
from ..ir.expr import (
    Binding,
    BindPattern,
    Call,
    Constant,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    If,
    Match,
    Pattern,
    Var,
)
from ..ir.traverse import children, post_order, spine


@final
@dataclass(frozen=True, slots=True)
class Loop:
    """A function that calls itself, with all calls of it."""

    function: Function
    inside: Sequence[Call]
    outside: Sequence[Call]
    around: frozenset[Var]
    """The variables that it uses from around it."""
    may_fail: bool
    """Whether a failure may come before the loop instead of in it: what stands before it is
    evaluated only where the loop is entered, and the loop has no other effects."""
    knows_start: bool
    """Whether its arguments in the first round are known before it."""

    @property
    def params(self) -> tuple[Var, ...]:
        """The parameters."""
        return self.function.params

    def passed(self, place: int) -> list[Expr]:
        """Return the arguments for a parameter in all calls of itself."""
        return [call.args[place] for call in self.inside]

    def fixed_params(self) -> frozenset[Var]:
        """Return the parameters that every round passes on unchanged."""
        return frozenset(
            p for i, p in enumerate(self.params) if all(a is p for a in self.passed(i))
        )


@final
@dataclass(frozen=True, slots=True)
class ListPart:
    """A field of the first node of a list: its head or its tail."""

    of: Expr
    index: int


@final
@dataclass(slots=True)
class Round:
    """The expressions that every continuing round evaluates."""

    bindings: list[Binding] = field(default_factory=list[Binding])
    made: dict[Expr, Expr | ListPart] = field(default_factory=dict[Expr, "Expr | ListPart"])
    tests: list[Expr] = field(default_factory=list[Expr])
    """The conditions that hold."""
    is_left_early: bool = False


def round_of(loop: Loop) -> Round:
    """Return the code that every round which goes on evaluates: the bindings on the one way to the
    calls of itself."""
    again = frozenset(loop.inside)
    goes_on = _going_on(loop.function.body, again)
    found = Round()
    body = loop.function.body
    while True:
        blocks, end = spine(body)
        for block in blocks:
            if block.flavour is not Flavour.REC:
                found.bindings += block.bindings
                found.made.update((b.var, b.value) for b in block.bindings)
        ways = [arm for arm in _arms(end) if goes_on[arm]]
        if len(ways) != 1 or any(goes_on[b.value] for k in blocks for b in k.bindings):
            return found
        found.is_left_early = bool(found.tests)
        match end:
            case If(condition, then):
                found.tests += _conjuncts(condition, found.made) if ways[0] is then else (end,)
            case Match(value, clauses):
                found.tests.append(end)
                clause = next(c for c in clauses if c.body is ways[0])
                for place, var in enumerate(_fields(clause.pattern)):
                    if isinstance(var, Var):
                        found.made[var] = ListPart(value, place)
            case _:
                pass
        body = ways[0]


def _arms(end: Expr) -> tuple[Expr, ...]:
    match end:
        case If(_, then, otherwise):
            return (then, otherwise)
        case Match(_, clauses):
            return tuple(clause.body for clause in clauses)
        case _:
            return ()


def _going_on(body: Expr, again: frozenset[Expr]) -> Counter[Expr]:
    """Return how many of the calls stand in each expression."""
    found: Counter[Expr] = Counter()
    for node in post_order(body):
        found[node] = (node in again) + sum(found[child] for child in children(node))
    return found


def _fields(pattern: Pattern) -> tuple[Expr | None, ...]:
    """Return the variables of the fields of the first node of a list."""
    match pattern:
        case ConstructorPattern(_, "Cons", fields):
            return tuple(
                f.var if isinstance(f, BindPattern) and f.inner is None else None for f in fields
            )
        case _:
            return ()


def _conjuncts(condition: Expr, made: Mapping[Expr, Expr | ListPart]) -> list[Expr]:
    """Return the tests that hold where a condition does."""
    found: list[Expr] = []
    pending: list[tuple[Expr, Mapping[Expr, Expr | ListPart]]] = [(condition, made)]
    while pending:
        atom, known = pending.pop()
        value = known.get(atom)
        match value:
            case If(first, then, Constant(value=False)):
                blocks, end = spine(then)
                pending.append((end, {b.var: b.value for k in blocks for b in k.bindings}))
                pending.append((first, known))
            case None | ListPart():
                pass
            case _:
                found.append(value)
    return found


def part_of(value: Match) -> ListPart | None:
    """Return which field of the first node of a list a match gives, if it gives one."""
    if not value.clauses or value.clauses[0].guard is not None:
        return None
    clause = value.clauses[0]
    fields = _fields(clause.pattern)
    return ListPart(value.value, fields.index(clause.body)) if clause.body in fields else None
