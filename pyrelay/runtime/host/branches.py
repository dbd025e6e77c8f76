"""If and Match as Python `if`s, never as Python `match` or nested without bound.

Where no code runs below, an arm ends the function or goes round its loop, so what follows need not
be nested in an `else`. An arm that would nest too deeply becomes a function of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

from ...ir.expr import (
    BindPattern,
    Clause,
    ConstructorPattern,
    Expr,
    If,
    LiteralPattern,
    Match,
    Pattern,
    TuplePattern,
    Var,
    type_of,
)
from ...ir.traverse import Steps
from ...ir.types import UNIT
from .exits import Assigned, Exit, is_last
from .liveness import Region
from .loops import outline
from .writer import Writer

MOST_NESTED: Final = 50
"""Python's own compiler and printer recurse on nested statements."""

MOST_CHAINED: Final = 20
"""A longer chain of cases is written one after the other, not as `elif`s, for the same reason."""


def write_if(writer: Writer, node: If, region: Region, position: int, exit_: Exit) -> Steps[None]:
    """Write a conditional whose value goes to an exit."""
    test = writer.nodes([node.condition])[0]
    dying = writer.dying(region, position)
    first, second = writer.live.region(node, 0), writer.live.region(node, 1)
    then = yield _arm(writer, node.then, first, dying, exit_)
    if is_last(exit_):
        writer.code.at(node.span)
        writer.emit(writer.code.branch(test, then, ()))
        yield _flow(writer, node.otherwise, second, dying, exit_)
        return
    writer.code.at(node.span)
    otherwise = yield _arm(writer, node.otherwise, second, dying, exit_)
    writer.code.at(node.span)
    writer.emit(writer.code.branch(test, then, otherwise))


def _arm(
    writer: Writer, body: Expr, region: Region, dying: Sequence[Var], exit_: Exit
) -> Steps[list[ast.stmt]]:
    with writer.nested() as statements:
        yield _flow(writer, body, region, dying, exit_)
    return statements


def _flow(
    writer: Writer, body: Expr, region: Region, dying: Sequence[Var], exit_: Exit
) -> Steps[None]:
    """Write an arm where it stands; what dies with the branch is deleted as early as it can be."""
    writer.delete([v for v in dying if v not in region.last])
    used = [v for v in dying if v in region.last]
    if writer.frame.nesting > MOST_NESTED:
        region.inherited = set()
        yield outline(writer, exit_, lambda e: writer.block(body, region, e), used)
    else:
        region.inherited = set(used)
        yield writer.block(body, region, exit_)


def write_match(
    writer: Writer, node: Match, region: Region, position: int, exit_: Exit
) -> Steps[None]:
    """Write a case analysis whose value goes to an exit."""
    value = writer.nodes([node.value])[0]
    if not isinstance(value, ast.Name):
        bound = writer.bind(value, "matched")
        assert isinstance(bound, ast.Name)
        value = bound
    cases = _Cases(writer, node, value.id, region, position, exit_)
    has_guard = any(c.guard is not None for c in node.clauses)
    if is_last(exit_):
        yield cases.write_in_sequence()
    elif has_guard or len(node.clauses) > MOST_CHAINED:
        yield cases.write_with_flag()
    else:
        yield cases.write_chain()


class _Cases:
    """The clauses of one match on the value of a name."""

    def __init__(
        self, writer: Writer, node: Match, name: str, region: Region, position: int, exit_: Exit
    ) -> None:
        self._writer: Final = writer
        self._node: Final = node
        self._name: Final = name
        self._dying: Final = writer.dying(region, position)
        self._exit: Final = exit_

    def write_in_sequence(self) -> Steps[None]:
        """Each case leaves, so the next can follow it."""
        writer = self._writer
        for i, clause in enumerate(self._node.clauses):
            tests = self._tests(i)
            if not tests and clause.guard is None:
                yield self._body(i)
                return
            with writer.nested() as statements:
                yield self._guarded(i, None)
            self._emit_case(clause, tests, statements)
        self._emit_failure()

    def write_chain(self) -> Steps[None]:
        """Write the cases as one `if` with `elif`s."""
        writer = self._writer
        arms: list[tuple[list[ast.expr], list[ast.stmt]]] = []
        for i in range(len(self._node.clauses)):
            tests = self._tests(i)
            with writer.nested() as statements:
                yield self._body(i)
            arms.append((tests, statements))
            if not tests:
                break
        rest: list[ast.stmt] = []
        if arms[-1][0]:
            with writer.nested() as rest:
                self._emit_failure()
        for clause, (tests, statements) in reversed([*zip(self._node.clauses, arms, strict=False)]):
            writer.code.at(clause.pattern.span)
            rest = (
                statements
                if not tests
                else [writer.code.branch(writer.code.both(tests), statements, rest)]
            )
        for statement in rest:
            writer.emit(statement)

    def write_with_flag(self) -> Steps[None]:
        """Write the cases one after the other; a flag says whether one of them matched."""
        writer = self._writer
        flag = writer.names.fresh("found")
        writer.assign(flag, writer.code.literal(False))
        for i, clause in enumerate(self._node.clauses):
            tests = [writer.code.unary(ast.Not(), writer.load(flag)), *self._tests(i)]
            with writer.nested() as statements:
                yield self._guarded(i, flag)
            self._emit_case(clause, tests, statements)
        with writer.nested() as statements:
            self._emit_failure()
        if statements:
            absent = writer.code.unary(ast.Not(), writer.load(flag))
            writer.emit(writer.code.branch(absent, statements, ()))

    def _emit_case(
        self, clause: Clause, tests: Sequence[ast.expr], statements: list[ast.stmt]
    ) -> None:
        writer = self._writer
        writer.code.at(clause.pattern.span)
        if tests:
            writer.emit(writer.code.branch(writer.code.both(tests), statements, ()))
        else:
            writer.frame.statements += statements

    def _emit_failure(self) -> None:
        """Stop the program where no clause matched; an exhaustive match never comes here."""
        last = self._node.clauses[-1] if self._node.clauses else None
        if not self._node.partial and last is not None and last.guard is None:
            return
        writer = self._writer
        writer.code.at(self._node.span)
        number = writer.program.pool.no_clause(self._node.span)
        error = writer.code.call(writer.code.name("failure"), [writer.code.literal(number)])
        writer.emit(writer.code.stop(error))

    def _guarded(self, index: int, flag: str | None) -> Steps[None]:
        """Write what a clause does once its pattern fits: its guard, if any, then its body."""
        writer, clause = self._writer, self._node.clauses[index]
        if clause.guard is None:
            self._set(flag)
            yield self._body(index)
            return
        self._bind(clause)
        writer.code.at(clause.guard.span)
        guard = writer.names.fresh("guard")
        region = writer.live.region(self._node, 2 * index + 1)
        yield writer.block(clause.guard, region, Assigned(guard))
        with writer.nested() as statements:
            self._set(flag)
            yield self._body(index, is_bound=True)
        writer.emit(writer.code.branch(writer.load(guard), statements, ()))

    def _set(self, flag: str | None) -> None:
        if flag is not None:
            self._writer.assign(flag, self._writer.code.literal(True))

    def _body(self, index: int, *, is_bound: bool = False) -> Steps[None]:
        writer, clause = self._writer, self._node.clauses[index]
        if not is_bound:
            self._bind(clause)
        region = writer.live.region(self._node, 2 * index)
        yield _flow(writer, clause.body, region, self._dying, self._exit)

    def _bind(self, clause: Clause) -> None:
        writer = self._writer
        pending: list[tuple[Pattern, _Path]] = [(clause.pattern, ())]
        while pending:
            pattern, path = pending.pop()
            writer.code.at(pattern.span)
            match pattern:
                case BindPattern(var, inner):
                    target = writer.target(var)
                    if target is not None:
                        writer.assign(target, self._reach(path))
                    if target is not None or type_of(var) == UNIT:
                        writer.define(var)
                    pending += () if inner is None else ((inner, path),)
                case _:
                    pending += reversed(_inside(pattern, path))

    def _tests(self, index: int) -> list[ast.expr]:
        """Return the tests of a clause, outside in; none for the last clause that must fit."""
        clause = self._node.clauses[index]
        is_rest = index == len(self._node.clauses) - 1 and not self._node.partial
        if is_rest and clause.guard is None:
            return []
        writer, tests = self._writer, list[ast.expr]()
        pending: list[tuple[Pattern, _Path]] = [(clause.pattern, ())]
        while pending:
            pattern, path = pending.pop()
            writer.code.at(pattern.span)
            match pattern:
                case ConstructorPattern(adt, name):
                    value = self._reach(path)
                    tests.append(writer.program.layout.test(writer.code, value, adt, name))
                    pending += reversed(_inside(pattern, path))
                case LiteralPattern(literal):
                    equal = writer.code.literal(literal)
                    tests.append(writer.code.compare(ast.Eq(), self._reach(path), equal))
                case BindPattern(_, inner):
                    pending += () if inner is None else ((inner, path),)
                case _:
                    pending += reversed(_inside(pattern, path))
        return tests

    def _reach(self, path: _Path) -> ast.expr:
        writer = self._writer
        node = writer.load(self._name)
        for owner, index in path:
            if owner is None:
                node = writer.code.item(node, writer.code.literal(index))
            else:
                layout = writer.program.layout
                node = layout.field(writer.code, node, owner.adt, owner.name, index)
        return node


_Path = tuple[tuple[ConstructorPattern | None, int], ...]
"""Fields from the outside in: of a constructor, or of a tuple (None)."""


def _inside(pattern: Pattern, path: _Path) -> list[tuple[Pattern, _Path]]:
    match pattern:
        case ConstructorPattern(fields=fields):
            return [(f, (*path, (pattern, i))) for i, f in enumerate(fields)]
        case TuplePattern(fields):
            return [(f, (*path, (None, i))) for i, f in enumerate(fields)]
        case _:
            return []
