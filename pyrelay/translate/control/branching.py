"""Statements with several ways through them, `if` and `match`, and their continuation."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.expr import Binding, Expr, Flavour, LetBlock, Var
from ...ir.traverse import Steps
from ..blocks.assumptions import know
from ..blocks.blocks import Arrivals, Before, CallWith, Cursor, Enclosing, Give, cursor
from ..blocks.cases import Arm, match_cases
from ..blocks.conditions import branch
from ..program.context import Context
from ..program.environment import Unbound
from ..source.flow import Branching, bodies
from .loops import Block, bind_joined, head_span, join_function

Straight: TypeAlias = Callable[[Context, Cursor | None, BlockBuilder, Enclosing], Steps[None]]
"""Translates statements that control never leaves, adding to bindings."""


def join(
    cx: Context, stmt: Branching, code: BlockBuilder, enclosing: Enclosing, straight: Straight
) -> Steps[None]:
    """Translate a branch after which control goes on, and bind the names that are read later."""
    names = enclosing.flow.joined(stmt)
    span = head_span(cx, stmt)
    before = Before(cx.env.mark(), enclosing.flow.assigned[stmt])
    ends = [Give(names, Arrivals(before=before)) for _ in bodies(stmt)]

    def arm(body: Sequence[ast.stmt], end: Give) -> Arm:
        def translate() -> Steps[Expr]:
            inside = BlockBuilder()
            yield straight(cx, cursor(body), inside, replace(enclosing, end=end))
            cx.uses = []  # names are joined where they are assigned
            return inside.close(end.finish(cx, span))

        return translate

    arms = [arm(body, end) for body, end in zip(bodies(stmt), ends, strict=True)]
    value = yield _ways(cx, stmt, arms, span)
    why = _one_way(stmt, span, [e.arrivals for e in ends])
    joined = _joined([e.arrivals for e in ends])
    captured, cx.captured = cx.captured, {}  # each way has looked at its own assignments
    bind_joined(cx, names, joined, value, code, why)
    cx.captured = captured
    know(cx, joined.agreed, _tested(stmt), code)


def leave(
    cx: Context, stmt: Branching, rest: Cursor | None, enclosing: Enclosing, block: Block
) -> Steps[Expr]:
    """Translate a branch that may leave what is around it, together with all that follows."""
    span = head_span(cx, stmt)
    enclosing = replace(enclosing, place=span)
    if rest is None or not enclosing.flow.falls_through(stmt):
        arms = [_arm(cx, cursor(body, rest), enclosing, block) for body in bodies(stmt)]
        return (yield _ways(cx, stmt, arms, span))
    # Several ways may go on: what follows becomes a function that all of them call.
    after = Var("after_match" if isinstance(stmt, ast.Match) else "after_if", span=span)
    names = enclosing.flow.joined(stmt)
    before = Before(cx.env.mark(), enclosing.flow.assigned[stmt])
    ends = [CallWith(after, names, (), Arrivals(before=before)) for _ in bodies(stmt)]
    arms = [
        _arm(cx, cursor(body), replace(enclosing, end=end), block)
        for body, end in zip(bodies(stmt), ends, strict=True)
    ]
    whole = yield _ways(cx, stmt, arms, span)
    arrivals = [e.arrivals for e in ends]
    every = CallWith(after, names, (), _joined(arrivals))
    why = _one_way(stmt, span, arrivals)
    joined = yield join_function(cx, every, rest, enclosing, block, (why, _tested(stmt)))
    return LetBlock((Binding(after, joined),), whole, Flavour.REC, span=span)


def _ways(cx: Context, stmt: Branching, arms: Sequence[Arm], span: Span) -> Steps[Expr]:
    arms, cx.uses = _apart(cx, arms), []
    if isinstance(stmt, ast.Match):
        return (yield match_cases(cx, stmt, arms, span))
    return (yield branch(cx, stmt.test, arms[0], arms[1], span))


def _apart(cx: Context, arms: Sequence[Arm]) -> list[Arm]:
    """Return the arms such that none sees what functions in another have captured; behind the
    branch the captures of all of them count."""
    before = cx.captured
    found = dict(before)

    def apart(arm: Arm) -> Arm:
        def translate() -> Steps[Expr]:
            cx.captured = dict(before)
            around, cx.uses = cx.uses, []
            made = yield arm()
            cx.uses = [*around, *cx.uses]
            found.update({n: s for n, s in cx.captured.items() if n not in found})
            cx.captured = found
            return made

        return translate

    return [apart(arm) for arm in arms]


def _tested(stmt: Branching) -> ast.expr:
    return stmt.subject if isinstance(stmt, ast.Match) else stmt.test


def _joined(arrivals: Sequence[Arrivals]) -> Arrivals:
    return reduce(Arrivals.joined, arrivals)


def _one_way(stmt: Branching, span: Span, arrivals: Sequence[Arrivals]) -> Callable[[str], Unbound]:
    """Return the function that describes the path on which a name has no value."""

    def why(name: str) -> Unbound:
        places = [i for i, a in enumerate(arrivals) if name in a.missing]
        if isinstance(stmt, ast.Match):
            case = ast.unparse(stmt.cases[places[0]].pattern)
            return Unbound(span, f"`{name}` gets no value in `case {case}`")
        if len(places) > 1:
            return Unbound(span, f"`{name}` may get no value in this `if`")
        way = "true" if places == [0] else "false"
        return Unbound(span, f"`{name}` gets no value when this condition is {way}")

    return why


def _arm(cx: Context, at: Cursor | None, enclosing: Enclosing, block: Block) -> Arm:
    def translate() -> Steps[Expr]:
        layers, statics = cx.layers, dict(cx.statics)
        found = yield block(cx, at, enclosing)
        cx.layers = layers
        cx.statics.clear()
        cx.statics.update(statics)
        cx.env.touch()
        return found

    return translate
