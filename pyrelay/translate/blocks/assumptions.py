"""`assert` of what a value is: from there on its class is known, or that it is not None."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ...diagnostics.source import NOWHERE, Span
from ...ir.block_builder import BlockBuilder
from ...ir.expr import BindPattern, Call, Clause, Expr, If, Match, Tuple, TupleGet, Var, Wildcard
from ...ir.traverse import Steps
from ...operators.host.text import stop
from ..calls.mentions import unit
from ..calls.strings import Template, read_text
from ..data.data import DataConstructor
from ..names.known_parts import entry_of
from ..names.narrowing import (
    Facts,
    bound_as,
    content_of,
    fields_bound,
    node_of,
    none,
    note,
    note_class,
    note_not,
    of_class,
    only_class,
    some,
    testable,
)
from ..names.static import static_value
from ..program.context import Context
from ..program.environment import Bound
from ..source.unions import is_data_class
from .conditions import class_tested, excluded_before, narrows


def assume(
    cx: Context, test: ast.expr, message: ast.expr | None, code: BlockBuilder
) -> Steps[None]:
    """Translate an assertion whose test narrows names."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield assume(cx, value, message, code)
        case ast.Call(args=[value, classes]) if narrows(cx, test):
            found = class_tested(cx, classes)
            yield _of_class(cx, value, found, test, message, code)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(args=[value, classes]) as inside) if (
            narrows(cx, inside)
        ):
            found = class_tested(cx, classes)
            left = [c for c in _members(cx, found) if c not in found]
            yield _of_class(cx, value, left, test, message, code)
        case ast.Compare(left=value, ops=[ast.IsNot()]):
            yield _is_there(cx, value, test, message, code)
        case _:
            yield _checked(cx, test, message, code)


def _members(cx: Context, found: Sequence[DataConstructor]) -> Sequence[DataConstructor]:
    return cx.program.data.members(found[0]) if found else ()


def _failure(cx: Context, test: ast.expr, message: ast.expr | None) -> Steps[Expr]:
    """Return the code that runs where the assertion does not hold."""
    words = Template("the assertion does not hold")
    if message is not None:
        words = yield read_text(cx, message)
    span = cx.span(test)
    return Call(stop, (words.expression(span),), {"assertion": True}, span=span)


def _checked(
    cx: Context, test: ast.expr, message: ast.expr | None, code: BlockBuilder
) -> Steps[None]:
    """Check a condition that narrows no name here."""
    span = cx.span(test)
    condition = yield cx.expression(test)
    failure = yield _failure(cx, test, message)
    code.bind(Var("_", span=span), If(condition, unit(span), failure, span=span))


def _of_class(
    cx: Context,
    node: ast.expr,
    wanted: Sequence[DataConstructor],
    test: ast.expr,
    message: ast.expr | None,
    code: BlockBuilder,
) -> Steps[None]:
    """Check that a value is of one of some classes; if that leaves one, its fields are known."""
    entry = testable(cx, node)
    if entry is None or not wanted:
        yield _checked(cx, test, message, code)
        return
    content = content_of(cx, node)
    if content is not None:
        yield _content(cx, node, content, wanted, test, message, code)
    others = [c for c in _members(cx, wanted) if c not in wanted]
    mark = cx.env.mark()
    note_not(cx, node, others)
    left = wanted[0] if len(wanted) == 1 else only_class(cx, node)
    cx.env.undo(mark)
    if left is None and content is None:
        yield _checked(cx, test, message, code)
    if left is None:
        note_not(cx, node, others)
        return
    value = yield cx.expression(node)
    failure = yield _failure(cx, test, message)
    rest = [Clause(Wildcard(span=NOWHERE), failure)]
    _open(cx, node, left, value, rest, code, cx.span(test))


def _content(
    cx: Context,
    node: ast.expr,
    content: Var,
    wanted: Sequence[DataConstructor],
    test: ast.expr,
    message: ast.expr | None,
    code: BlockBuilder,
) -> Steps[None]:
    """Check that an optional is a value of one of some classes, which the name then stands for."""
    entry, place, span = testable(cx, node), cx.span(node), cx.span(test)
    value = yield cx.expression(node)
    clauses: list[Clause] = []
    for each in wanted:
        var = Var(content.name, span=place)
        clauses.append(Clause(bound_as(var, of_class(each, place)), var))
    failure = yield _failure(cx, test, message)
    code.bind(content, Match(value, (*clauses, Clause(Wildcard(span=NOWHERE), failure)), span=span))
    if entry is not None:
        note(cx, node, Bound(atom=content, holder=entry.holder, excluded=entry.excluded))


def open_constructed(
    cx: Context, target: ast.Name, value: ast.expr, made: Expr, code: BlockBuilder
) -> None:
    """Note what a name is that has just been given a new value of one class of a union."""
    if target.id not in cx.opened:
        return
    span = cx.span(value)
    cls = _class_made(cx, value)
    found = None if cls is None else cx.constructor(cls, span)
    if found is None or len(_members(cx, [found])) == 1:
        return
    _open(cx, target, found, made, excluded_before(cx, (found,), span), code, span)


def _class_made(cx: Context, value: ast.expr) -> type | None:
    """Return the class that an expression makes a value of, on all its ways; None if of several."""
    found: dict[type, None] = {}
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.IfExp):
            pending += (current.body, current.orelse)
            continue
        known = static_value(cx, current.func) if isinstance(current, ast.Call) else None
        if known is None or not is_data_class(known.value):
            return None
        found[known.value] = None
    return next(iter(found)) if len(found) == 1 else None


def know(cx: Context, facts: Facts, place: ast.expr, code: BlockBuilder) -> None:
    """Let facts about classes hold from here on. The fields of a name whose attributes are read
    become variables, if its class is known."""
    for path in sorted(facts, key=len):
        node = node_of(path, place)
        note_not(cx, node, facts[path])
        found = only_class(cx, node) if isinstance(node, ast.Name) else None
        entry = entry_of(cx, node)
        if found is None or entry is None or entry.atom is None or path[0] not in cx.opened:
            continue
        span = cx.span(place)
        _open(cx, node, found, entry.atom, excluded_before(cx, (found,), span), code, span)


def _open(
    cx: Context,
    node: ast.expr,
    found: DataConstructor,
    value: Expr,
    rest: Sequence[Clause],
    code: BlockBuilder,
    span: Span,
) -> None:
    """Make variables of the fields of a value of a class; `rest` is for values of others."""
    place = cx.span(node)
    fields = fields_bound(found, place)
    inside = tuple(f.var for f in fields if isinstance(f, BindPattern))
    clause = Clause(of_class(found, place, fields), Tuple(inside, span=span))
    whole = Var("fields", span=span)
    code.bind(whole, Match(value, (clause, *rest), span=span))
    parts: list[BindPattern] = []
    for index, var in enumerate(inside):
        part = Var(var.name, span=place)
        code.bind(part, TupleGet(whole, index, span=place))
        parts.append(BindPattern(part, span=place))
    note_class(cx, node, found, parts)


def _is_there(
    cx: Context, node: ast.expr, test: ast.expr, message: ast.expr | None, code: BlockBuilder
) -> Steps[None]:
    """Check that an optional is not None; from there on its content is known."""
    entry = testable(cx, node)
    place, span = cx.span(node), cx.span(test)
    value = yield cx.expression(node)
    failure = yield _failure(cx, test, message)
    inside = Var("content", span=place)
    there = some(BindPattern(inside, span=place), place)
    name = node.id if isinstance(node, ast.Name) else "content"
    content = Var(name, span=place)
    code.bind(
        content, Match(value, (Clause(none(place), failure), Clause(there, inside)), span=span)
    )
    if entry is not None:
        note(cx, node, Bound(atom=content, holder=entry.holder))
