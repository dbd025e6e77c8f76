"""The shape of translated statements: bindings in sequence, and their continuation.

A block of statements becomes let bindings around an expression. What that expression is when
control reaches the end of the block is its `End`: the function returns nothing, a branch gives the
names that are joined after it, a loop goes into its next round, a join point is called.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Protocol, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.signatures import MissingReturn
from ...diagnostics.source import Span
from ...ir.expr import Call, Constant, Expr, Tuple, Var
from ..calls.mentions import value_of
from ..data.data import DataConstructor
from ..names.narrowing import Facts, Path, both, facts_of
from ..program.context import Context
from ..program.environment import Bound, either
from ..source.flow import Flow


@final
@dataclass(frozen=True, slots=True)
class Copy:
    """Stands before one copy of the body of a `relay.layers` loop: its variable and its number;
    None after the last."""

    target: ast.expr
    number: int | None


Statement: TypeAlias = ast.stmt | Copy


@final
@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in nested sequences of statements: the statements that are left here, and their
    continuation."""

    body: Sequence[Statement]
    place: int
    after: Cursor | None


def cursor(body: Sequence[Statement], after: Cursor | None = None) -> Cursor | None:
    """Return the place before a body."""
    return Cursor(body, 0, after) if body else after


def following(at: Cursor) -> Cursor | None:
    """Return the place after the statement at a place."""
    if at.place + 1 < len(at.body):
        return Cursor(at.body, at.place + 1, at.after)
    return at.after


class End(Protocol):
    """The value of a block when control reaches its end."""

    def finish(self, cx: Context, span: Span) -> Expr:
        """Return the expression, from what the names stand for there."""
        ...


@final
@dataclass(frozen=True, slots=True)
class FunctionEnd:
    """The end of a function: it gives nothing, unless it returns a value elsewhere."""

    name: str
    returns: Span | None

    def finish(self, cx: Context, span: Span) -> Expr:
        """Return unit; report the path that returns nothing where others return a value."""
        if self.returns is not None:
            path = "nothing is returned after this"
            return cx.refuse(MissingReturn(span, self.name, self.returns, path))
        return Tuple((), span=span)


@final
@dataclass(frozen=True, slots=True)
class Before:
    """The names in front of a branch: a mark in their log, and those that the branch assigns."""

    mark: int
    assigned: tuple[str, ...]

    def tested(self, cx: Context) -> list[str]:
        """Return the names that tests have narrowed and nothing has assigned."""
        found: list[str] = []
        for name, before in cx.env.changed(self.mark).items():
            entry = cx.env.find(name)
            if not isinstance(entry, Bound) or not isinstance(before, Bound):
                continue
            if name not in self.assigned and entry.atom is not None and entry.atom is before.atom:
                found.append(name)
        return found


@final
@dataclass(frozen=True, slots=True)
class Arrivals:
    """The bindings of names where paths of control meet."""

    missing: set[str] = field(default_factory=set[str])
    """The names that have no value on some path."""
    known: dict[str, Bound] = field(default_factory=dict[str, Bound])
    """The facts about the others on every path."""
    before: Before | None = None
    """The surroundings of the branch whose paths end here."""
    facts: list[Facts] = field(default_factory=list[Facts])
    """The facts about classes, on each path."""

    def values(self, cx: Context, names: Sequence[str], span: Span) -> tuple[Expr, ...]:
        """Return the values of names where one path ends; a placeholder for one that has none,
        which is a mistake where it is used."""
        found: list[Expr] = []
        for name in names:
            entry = cx.env.find(name)
            if isinstance(entry, Bound):
                found.append(value_of(cx, entry, name, span))
                self._add(name, entry)
            else:
                self.missing.add(name)
                found.append(Constant(0, span=span))
        self._note_facts(cx, names)
        return tuple(found)

    def _note_facts(self, cx: Context, names: Sequence[str]) -> None:
        """Note the facts of this path about the names joined, and about those only tested."""
        if self.before is None:
            return
        found: dict[Path, tuple[DataConstructor, ...]] = {}
        tested = self.before.tested(cx)
        for name in (*names, *tested):
            entry = cx.env.find(name)
            if isinstance(entry, Bound):
                found |= facts_of(cx, name, entry)
        self.facts.append(found)

    def _add(self, name: str, entry: Bound) -> None:
        before = self.known.get(name)
        self.known[name] = entry if before is None else either(before, entry)

    def joined(self, other: Arrivals) -> Arrivals:
        """Return the arrivals from here and from there."""
        facts = [*self.facts, *other.facts]
        found = Arrivals(self.missing | other.missing, dict(self.known), None, facts)
        for name, entry in other.known.items():
            found._add(name, entry)
        return found

    @property
    def agreed(self) -> Facts:
        """The facts about classes on all paths."""
        return reduce(both, self.facts) if self.facts else {}

    def entry(self, name: str, var: Var) -> Bound:
        """Return the entry of a name after the join, bound to a new variable."""
        known = self.known.get(name, Bound())
        # Facts of tests hold where they stand; those on which all paths agree are in `agreed`.
        return replace(
            known, atom=var, static=None, constructor=None, parts=None, narrowed=None, excluded=()
        )


@final
@dataclass(frozen=True, slots=True)
class Give:
    """The names that live on, as a tuple; one alone is bare."""

    names: tuple[str, ...]
    arrivals: Arrivals = field(default_factory=Arrivals)

    def finish(self, cx: Context, span: Span) -> Expr:
        """Return the values of the names."""
        return packed(self.arrivals.values(cx, self.names, span), span)


@final
@dataclass(frozen=True, slots=True)
class CallWith:
    """A call of a local function, in tail position, with the names that it takes.

    `steps` make the next values of what a `for` loop counts with, which come first.
    """

    function: Var
    names: tuple[str, ...]
    steps: tuple[Callable[[], Expr], ...] = ()
    arrivals: Arrivals = field(default_factory=Arrivals)

    def finish(self, cx: Context, span: Span) -> Expr:
        """Return the call."""
        values = self.arrivals.values(cx, self.names, span)
        steps = [step() for step in self.steps]
        if cx.program.is_debugged:  # the head of the loop is one line, and not reached twice
            steps = [replace(step, span=span) for step in steps]
        return Call(self.function, (*steps, *values), span=span)


def packed(values: Sequence[Expr], span: Span) -> Expr:
    """Return several values as a tuple, one as it is."""
    return values[0] if len(values) == 1 else Tuple(tuple(values), span=span)


@final
@dataclass(frozen=True, slots=True)
class LoopEnds:
    """Where `break` and `continue` of the loop around lead."""

    leave: End
    again: End


@final
@dataclass(frozen=True, slots=True)
class Enclosing:
    """The function and the loop around statements."""

    flow: Flow
    function: str
    returns: Span | None
    end: End
    place: Span
    """Where control comes from, for a block that is empty."""
    loop: LoopEnds | None = None
