"""Loops as local functions whose recursive calls are tail calls.

The names that a round assigns and the next one reads are parameters; leaving the loop gives the
names that are read after it. Where a `return` stands inside, leaving the loop goes on with the rest
of the function instead, so that a `return` is simply the result.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.sites import ModelOverLoop, UnknownModel
from ...diagnostics.source import Construct, Span
from ...ir.block_builder import BlockBuilder
from ...ir.constant import is_placeholder
from ...ir.expr import Binding, Call, Expr, Flavour, Function, If, LetBlock, TupleGet, Var
from ...ir.traverse import Steps
from ...ir.types import UNKNOWN, AdtType, Type
from ...prelude.library import OPTION
from ..blocks.assumptions import know
from ..blocks.blocks import Arrivals, Before, CallWith, Cursor, Enclosing, Give, LoopEnds, cursor
from ..blocks.conditions import branch, inside
from ..blocks.iteration import Counts, Iteration, counting, read_iteration
from ..blocks.list_append import hold_elements_of
from ..blocks.targets import bind_target
from ..calls.passed_models import note_elements
from ..names.alias_check import aliased_in_loop, lists_aliased, lists_in
from ..names.declared_types import closed_type, declared_type, is_optional
from ..names.static import static_test
from ..program.context import Context
from ..program.environment import Alias, Bound, Unbound
from ..source.flow import Loop, has_break, names_of

Block: TypeAlias = Callable[[Context, Cursor | None, Enclosing], Steps[Expr]]
"""Translates statements from a place on."""


@final
@dataclass(frozen=True, slots=True)
class _Head:
    """A loop under construction: its function, its counter, and the values it carries."""

    stmt: Loop
    span: Span
    function: Var
    counts: Counts | None
    names: tuple[str, ...]
    params: tuple[Var, ...]
    initial: tuple[Expr, ...]


def loop(
    cx: Context, stmt: Loop, code: BlockBuilder, enclosing: Enclosing, block: Block
) -> Steps[None]:
    """Translate a loop that no `return` leaves, and bind the names that are read after it."""
    head = yield _head(cx, stmt, code, enclosing)
    before = Before(cx.env.mark(), enclosing.flow.assigned[stmt])
    leave = Give(enclosing.flow.joined(stmt), Arrivals(before=before))

    function = yield _function(cx, head, replace(enclosing, end=leave), block)
    code.bind_rec([Binding(head.function, function)])
    call = Call(head.function, head.initial, span=head.span)
    bind_joined(cx, leave.names, leave.arrivals, call, code, _no_round(cx, stmt))
    know(cx, leave.arrivals.agreed, _deciding(stmt), code)


def tail_loop(
    cx: Context,
    stmt: Loop,
    code: BlockBuilder,
    enclosing: Enclosing,
    rest: Cursor | None,
    block: Block,
) -> Steps[Expr]:
    """Translate a loop that may leave what is around it together with all that follows it."""
    head = yield _head(cx, stmt, code, enclosing)
    if rest is None or not has_break(stmt.body):
        function = yield _function(cx, head, enclosing, block, rest)
        return _closed(head, function)
    after = Var("after_loop", span=head.span)
    before = Before(cx.env.mark(), enclosing.flow.assigned[stmt])
    leave = CallWith(after, enclosing.flow.joined(stmt), (), Arrivals(before=before))
    function = yield _function(cx, head, replace(enclosing, end=leave), block)
    why = (_no_round(cx, stmt), _deciding(stmt))
    joined = yield join_function(cx, leave, rest, enclosing, block, why)
    return LetBlock((Binding(after, joined),), _closed(head, function), Flavour.REC, span=head.span)


def _deciding(stmt: Loop) -> ast.expr:
    """Return the expression that decides whether a loop goes on."""
    return stmt.iter if isinstance(stmt, ast.For) else stmt.test


def _closed(head: _Head, function: Function) -> Expr:
    call = Call(head.function, head.initial, span=head.span)
    return LetBlock((Binding(head.function, function),), call, Flavour.REC, span=head.span)


def join_function(
    cx: Context,
    end: CallWith,
    rest: Cursor,
    enclosing: Enclosing,
    block: Block,
    head: tuple[Callable[[str], Unbound], ast.expr],
) -> Steps[Function]:
    """Translate the continuation of a join as a function of the names joined there. `head` is what
    to say of a name without a value, and the expression that decides where control comes from."""
    span, (why, place) = end.function.span, head
    mark = cx.env.mark()
    # Marked as inferred, so that inference does not take it for a function to copy for each call.
    params = tuple(Var(n, UNKNOWN, span=span) for n in end.names)
    for name, var in zip(end.names, params, strict=True):
        missing = name in end.arrivals.missing
        cx.env.set(name, why(name) if missing else end.arrivals.entry(name, var))
    code = BlockBuilder()
    know(cx, end.arrivals.agreed, place, code)
    body = code.close((yield block(cx, rest, enclosing)))
    cx.env.undo(mark)
    return Function(params, body, name=end.function.name, span=span)


def bind_joined(
    cx: Context,
    names: Sequence[str],
    arrivals: Arrivals,
    value: Expr,
    code: BlockBuilder,
    why: Callable[[str], Unbound],
) -> None:
    """Bind the names that a branch or loop gives, which `value` holds as they are packed."""
    span = value.span
    if len(names) == 1 and not arrivals.missing:
        variables = [Var(names[0], span=span)]
        code.bind(variables[0], value)
    else:
        whole = Var("joined" if names else "_", span=span)
        code.bind(whole, value)
        variables = [Var(n, span=span) for n in names]
        for place, var in enumerate(variables):
            if len(names) > 1 and var.name not in arrivals.missing:
                code.bind(var, TupleGet(whole, place, span=span))
    for name, var in zip(names, variables, strict=True):
        if name in arrivals.missing:
            cx.env.set(name, why(name))
        else:
            cx.bind(name, arrivals.entry(name, var), span)


def _no_round(cx: Context, stmt: Loop) -> Callable[[str], Unbound]:
    span = head_span(cx, stmt)
    return lambda name: Unbound(span, f"`{name}` gets no value if this loop runs no round")


def head_span(cx: Context, stmt: ast.stmt) -> Span:
    """Return the span of the first line of a compound statement."""
    span = cx.span(stmt)
    line = span.text.split("\n", 1)[0].rstrip()
    return Span(span.file, span.start, span.start + len(line))


def _head(cx: Context, stmt: Loop, code: BlockBuilder, enclosing: Enclosing) -> Steps[_Head]:
    span = head_span(cx, stmt)
    counts: Counts | None = None
    kind = "while_loop"
    if isinstance(stmt, ast.For):
        kind = "for_loop"
        hold_elements_of(cx, stmt.iter)
        counts = counting((yield read_iteration(cx, stmt.iter, code)), cx.span(stmt.target), span)
    names = tuple(n for n in enclosing.flow.carried(stmt) if isinstance(cx.env.find(n), Bound))
    initial = Arrivals().values(cx, names, span)
    params = tuple(Var(n, _optional(cx, n), span=span) for n in names)
    if counts is not None:
        initial = (*counts.first, *initial)
    function = Var(kind, span=span.desugared(Construct.LOOP))
    return _Head(stmt, span, function, counts, names, params, initial)


def _function(
    cx: Context, head: _Head, enclosing: Enclosing, block: Block, rest: Cursor | None = None
) -> Steps[Function]:
    """Translate a loop: its rounds, and where its condition fails, its `else` and `rest`."""
    mark = cx.env.mark()
    _enter(cx, head, enclosing)
    counts = head.counts
    again = CallWith(head.function, head.names, () if counts is None else counts.steps)

    def exit_() -> Steps[Expr]:
        if rest is not None:
            _forget(cx, head, enclosing.flow.joined(head.stmt))
        at = cursor(head.stmt.orelse, rest)
        return (yield block(cx, at, replace(enclosing, place=head.span)))

    def round_() -> Steps[Expr]:
        code = BlockBuilder()
        if counts is not None and isinstance(head.stmt, ast.For):
            yield bind_target(cx, head.stmt.target, counts.iteration.element(counts.at), code)
            note_elements(cx, head.stmt.target, head.stmt.iter)
            _note_view(cx, head.stmt)
            _note_outside(cx, head.stmt, counts.iteration)
        ends = LoopEnds(leave=enclosing.end, again=again)
        rounds, carried = cx.rounds, cx.carried
        cx.rounds = {**rounds, **dict.fromkeys(enclosing.flow.assigned[head.stmt], head.span)}
        cx.carried = carried.union(head.names)
        body = yield block(cx, cursor(head.stmt.body), replace(enclosing, end=again, loop=ends))
        cx.rounds, cx.carried = rounds, carried
        return code.close(body)

    body = yield _guarded(cx, head, round_, exit_)
    _check_records(cx, head, again)
    cx.env.undo(mark)
    params = head.params if counts is None else (*counts.params, *head.params)
    return Function(params, body, name=head.function.name, span=head.span)


def _optional(cx: Context, name: str) -> Type | None:
    """Return the type of a name that is declared as an optional, or is None before the loop: a
    round may give it a value that is there. That of any other name is found."""
    entry = cx.env.find(name)
    if isinstance(entry, Bound) and entry.static is not None and entry.static.value is None:
        return AdtType(OPTION, (UNKNOWN,))
    declared = closed_type(declared_type(cx, ast.Name(name, ast.Load())))
    return declared if is_optional(declared) else None


def _enter(cx: Context, head: _Head, enclosing: Enclosing) -> None:
    """Make the names that the loop assigns stand for what a round finds."""
    aliased = aliased_in_loop(cx, head.stmt.body) if cx.writes_items else {}
    kept_lists = lists_aliased(cx, head.stmt.body)
    if isinstance(head.stmt, ast.For):
        why = "the loop runs over this list"
        over = {n.id: Alias(cx.span(n), why) for n in lists_in(cx, head.stmt.iter)}
        kept_lists = {**over, **kept_lists}
    params = dict(zip(head.names, head.params, strict=True))
    for name in enclosing.flow.assigned[head.stmt]:
        known = cx.env.find(name)
        if name in params and isinstance(known, Bound):
            holder = known.holder or kept_lists.get(name) or aliased.get(name)
            # Later rounds may find another function; models and their records must stay what
            # they are.
            kept = Bound(
                atom=params[name],
                model=known.model,
                places=known.places,
                record=known.record,
                items=known.items,
                holder=holder,
            )
            cx.env.set(name, kept)
        elif isinstance(known, Bound):
            why = f"`{name}` is not kept from one round of this loop to the next"
            cx.env.set(name, Unbound(head.span, why))


def _check_records(cx: Context, head: _Head, again: CallWith) -> None:
    """Report a name that is a model, or a record of a model's parameters, in the first round
    only."""
    for name in head.names:
        before, after = cx.env.find(name), again.arrivals.known.get(name)
        if not isinstance(before, Bound) or after is None or _is_refused(after):
            continue
        if before.model is not None and after.model != before.model:
            cx.program.report(ModelOverLoop(_assigned_at(cx, head, name), name, head.span))
        elif before.record is not None and after.record != before.record:
            cx.program.report(UnknownModel(head.span))


def _is_refused(entry: Bound) -> bool:
    """Return whether a name has no value because a mistake has been reported."""
    return entry.atom is not None and is_placeholder(entry.atom)


def _assigned_at(cx: Context, head: _Head, name: str) -> Span:
    """Return the last place inside a loop that gives a name its value."""
    stores = (
        node
        for stmt in head.stmt.body
        for node in ast.walk(stmt)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    )
    return max((cx.span(node) for node in stores), key=lambda s: s.start, default=head.span)


def _guarded(
    cx: Context, head: _Head, round_: Callable[[], Steps[Expr]], exit_: Callable[[], Steps[Expr]]
) -> Steps[Expr]:
    """Return a round where the condition of the loop holds, else what follows the loop. A loop that
    is endless ends only by what is inside."""
    if head.counts is not None:
        condition = head.counts.iteration.test(head.counts.at, head.span)
        body = yield inside(cx, round_)
        otherwise = yield inside(cx, exit_)
        return If(condition, body, otherwise, span=head.span.using(cx.uses))
    assert isinstance(head.stmt, ast.While)
    if static_test(cx)(head.stmt.test) is True:
        return (yield inside(cx, round_))
    return (yield branch(cx, head.stmt.test, round_, exit_, head.span))


def _note_view(cx: Context, stmt: ast.For) -> None:
    """Record that the elements may also be reached through the value that the loop runs over."""
    holder = Alias(cx.span(stmt.iter), "it is a part of this")
    for name in names_of(stmt.target) if cx.writes_items else ():
        entry = cx.env.find(name)
        if isinstance(entry, Bound):
            cx.env.set(name, replace(entry, holder=holder))


def _note_outside(cx: Context, stmt: ast.For, iteration: Iteration) -> None:
    """Record that the caller may reach the elements of its arguments."""
    for name in names_of(stmt.target) if iteration.holder is not None else ():
        entry = cx.env.find(name)
        if isinstance(entry, Bound):
            cx.env.set(name, replace(entry, holder=iteration.holder))


def _forget(cx: Context, head: _Head, names: Sequence[str]) -> None:
    """Record why names have no value after the loop."""
    why = _no_round(cx, head.stmt)
    for name in names:
        if isinstance(cx.env.find(name), Unbound):
            cx.env.set(name, why(name))
