"""`match` statements: clauses around bodies that others translate.

A case with alternatives becomes one clause for each; its guard and its body are then local
functions that these call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, final

from ...diagnostics.source import Construct, Span
from ...ir.constant import placeholder
from ...ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    LetBlock,
    Match,
    Pattern,
    Var,
    Wildcard,
)
from ...ir.traverse import Steps, takes_all
from ..data.data import DataConstructor
from ..names.known_parts import entry_of
from ..names.narrowing import (
    fields_bound,
    is_none,
    is_some,
    not_of,
    note,
    note_class,
    note_not,
    of_class,
    only_class,
    parts,
    shared_params,
    some,
    testable,
)
from ..program.context import Context
from ..program.environment import Alias, Bound, Unbound
from ..source.flow import is_never
from .conditions import excluded, excluded_before, is_assert_never, knowing
from .list_append import hold_captured, refuse_grown
from .patterns import Alternative, alternatives, apart, class_pattern, named, opened

Arm: TypeAlias = Callable[[], Steps[Expr]]
"""Translates the body of a case where its names are bound."""


def match_cases(cx: Context, stmt: ast.Match, arms: Sequence[Arm], span: Span) -> Steps[Expr]:
    """Translate a `match`; each arm is translated once."""
    value = yield cx.expression(stmt.subject)
    cases = _Cases(cx, stmt)
    for case in stmt.cases:
        hold_captured(cx, stmt.subject, case.pattern)
    before = cx.env.mark()
    for case, arm in zip(stmt.cases, arms, strict=True):
        if case is stmt.cases[-1] and _says_complete(cx, case):
            continue
        yield cases.add(case, arm)
    cx.env.undo(before)
    cases.complete(span)
    found: Expr = Match(value, tuple(cases.clauses), span=span.using(cx.uses))
    for binding in reversed(cases.functions):
        found = LetBlock((binding,), found, Flavour.REC, span=span)
    return found


def _says_complete(cx: Context, case: ast.match_case) -> bool:
    """Return whether a case only says that the cases before it are all there are."""
    is_rest = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
    return (
        is_rest
        and case.guard is None
        and len(case.body) == 1
        and is_never(case.body[0])
        and is_assert_never(cx, case.body[0])
    )


@final
class _Cases:
    """The clauses of one match, one case after the other."""

    def __init__(self, cx: Context, stmt: ast.Match) -> None:
        self._cx: Final = cx
        self._subject: Final = stmt.subject
        self.clauses: Final[list[Clause]] = []
        self.functions: Final[list[Binding]] = []
        self._taken: Final[list[DataConstructor]] = []
        """The classes that unguarded cases take whole."""
        self._is_there = False
        """Whether a case takes None, so that the values left are not."""
        self._is_whole = False
        """Whether a case takes all that is left."""

    def add(self, case: ast.match_case, arm: Arm) -> Steps[None]:
        """Add the clauses of a case; the cases after it see the subject as it is narrowed."""
        cx = self._cx
        found = yield alternatives(cx, case.pattern)
        left: DataConstructor | None = None
        takes_rest = any(takes_all(f.pattern) for f in found)
        self._is_whole = self._is_whole or (case.guard is None and takes_rest)
        if len(found) == 1 and takes_all(found[0].pattern):
            left = only_class(cx, self._subject) if self._reads_fields(case) else None
            found = [self._narrowed(found[0], left)]
        mark = cx.env.mark()
        if len(found) == 1:
            yield self._one(found[0], case, arm)
        else:
            yield self._several(found, case, arm)
        cx.env.undo(mark)
        if case.guard is not None:
            self._forget(found[0], cx.span(case.pattern))
        else:
            classes = [f.constructor for f in found if f.constructor and _takes_class(f)]
            note_not(cx, self._subject, classes)
            self._taken.extend(classes)
            self._is_there = self._is_there or any(is_none(f.pattern) for f in found)
            if left is not None:
                self.clauses.extend(excluded_before(cx, self._taken, cx.span(case.pattern)))

    def _reads_fields(self, case: ast.match_case) -> bool:
        """Return whether a case reads a field of the subject, which may have a name in the case."""
        names = {ast.unparse(self._subject)}
        if isinstance(case.pattern, ast.MatchAs) and case.pattern.name is not None:
            names.add(case.pattern.name)
        nodes = case.body if case.guard is None else [case.guard, *case.body]
        inside = (n for node in nodes for n in ast.walk(node))
        owners = (n.value for n in inside if isinstance(n, ast.Attribute))
        paths = (n for n in owners if isinstance(n, ast.Name | ast.Attribute))
        return any(ast.unparse(path) in names for path in paths)

    def complete(self, span: Span) -> None:
        """Add the clauses for the classes that tests before the match have excluded."""
        entry = entry_of(self._cx, self._subject)
        others = () if entry is None or self._is_whole else not_of(self._cx, entry)
        self.clauses.extend(excluded([c for c in others if c not in self._taken], span))

    def _narrowed(self, found: Alternative, left: DataConstructor | None) -> Alternative:
        """Return the pattern that takes everything as one for what the cases before have left: the
        only class, or a value that is not None."""
        span = found.pattern.span
        if left is None and not self._is_there:
            return found
        if left is None:
            return Alternative(some(found.pattern, span), found.names)
        whole = Alternative(of_class(left, span, fields_bound(left, span)), {}, left)
        for name, var in found.names.items():
            whole = named(whole, name, var)
        return whole

    def _one(self, found: Alternative, case: ast.match_case, arm: Arm) -> Steps[None]:
        cx, pattern = self._cx, found.pattern
        self._bind(found.names)
        self._bind_refused(found)
        for name, (constructor, fields) in found.classes.items():
            entry = cx.env.find(name)
            assert isinstance(entry, Bound)
            known = parts(cx, constructor, fields, entry.holder)
            cx.env.set(name, replace(entry, constructor=constructor, parts=known))
        if found.constructor is not None and testable(cx, self._subject) is not None:
            pattern = opened(pattern, found.constructor)
            note_class(cx, self._subject, found.constructor, class_pattern(pattern).fields)
        elif is_some(pattern):
            pattern = self._there(pattern)
        guard = None if case.guard is None else (yield cx.expression(case.guard))
        self.clauses.append(Clause(pattern, (yield self._arm(case, arm)), guard))

    def _arm(self, case: ast.match_case, arm: Arm) -> Steps[Expr]:
        cx = self._cx
        if case.guard is None:
            return (yield arm())
        return (yield knowing(cx, case.guard, arm, cx.span(case.guard)))

    def _there(self, pattern: Pattern) -> Pattern:
        """Return the pattern for a value that is not None, under the name of the subject too."""
        cx, entry = self._cx, testable(self._cx, self._subject)
        if entry is None:
            return pattern
        assert isinstance(pattern, ConstructorPattern)
        content = Var("content", span=pattern.span)
        note(cx, self._subject, Bound(atom=content, holder=entry.holder))
        (inner,) = pattern.fields
        below = None if isinstance(inner, Wildcard) else inner
        bound = BindPattern(content, below, span=inner.span)
        return replace(pattern, fields=(bound,))

    def _several(self, found: Sequence[Alternative], case: ast.match_case, arm: Arm) -> Steps[None]:
        cx, span = self._cx, self._cx.span(case.pattern)
        names = tuple(found[0].names)
        guard: Var | None = None
        if case.guard is not None:
            mark, guard = cx.env.mark(), Var("guard", span=cx.span(case.guard))
            params = shared_params(names, span)
            self._bind(dict(zip(names, params, strict=True)))
            test = yield cx.expression(case.guard)
            cx.env.undo(mark)
            self._define(guard, params, test)
        body, params = Var("case", span=span.desugared(Construct.CASE)), shared_params(names, span)
        self._bind(dict(zip(names, params, strict=True)))
        self._bind_refused(found[0])
        self._define(body, params, (yield self._arm(case, arm)))
        for each in map(apart, found):
            calls = [
                Call(f, tuple(each.names[n] for n in names), span=span)
                for f in (body, guard)
                if f is not None
            ]
            self.clauses.append(Clause(each.pattern, *calls))

    def _define(self, name: Var, params: tuple[Var, ...], body: Expr) -> None:
        function = Function(params, body, name=name.name, span=name.span)
        self.functions.append(Binding(name, function))

    def _bind(self, names: dict[str, Var]) -> None:
        cx = self._cx
        holder = Alias(cx.span(self._subject), "it is a part of this") if cx.writes_items else None
        for name, var in names.items():
            if name in cx.grown:
                refuse_grown(cx, name, var.span)
            cx.bind(name, Bound(atom=var, holder=holder), var.span)

    def _bind_refused(self, found: Alternative) -> None:
        """Let names that a refused pattern binds stand for anything: its mistake is enough."""
        span = found.pattern.span
        for name in found.refused:
            self._cx.bind(name, Bound(atom=placeholder(span)), span)

    def _forget(self, found: Alternative, span: Span) -> None:
        """Note that in Python names keep what a pattern bound though its guard was False."""
        for name in found.names:
            why = f"`{name}` may be bound by this case, whose guard was False"
            self._cx.env.set(name, Unbound(span, why))


def _takes_class(found: Alternative) -> bool:
    """Return whether a pattern takes every value of its class."""
    return all(map(takes_all, class_pattern(found.pattern).fields))
