"""Lists written out: displays and comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...diagnostics.source import Construct
from ...ir.block_builder import BlockBuilder
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Var,
)
from ...ir.traverse import Steps
from ...ir.types import UNKNOWN
from ...prelude.library import qualified
from ..blocks.conditions import Continue, branch, condition
from ..blocks.iteration import counting, read_iteration
from ..blocks.list_append import empty_of, longer, turned
from ..blocks.optional_parts import element_type, inner_displays
from ..blocks.targets import bind_target
from ..calls.passed_models import known_of, note_elements
from ..models.listed_models import model_value
from ..names.kept_functions import check_kept
from ..program.context import Context, in_turn
from ..source.flow import names_of


def display(cx: Context, node: ast.List) -> Steps[Expr]:
    """Translate `[a, b]` and `[a, *xs]`."""
    span = cx.span(node)
    own = cx.displays.pop(node, None) or element_type(node.elts)
    cx.displays.update(inner_displays(node.elts, own))
    if known_of(cx, node) is None:
        elements = yield cx.expressions([content(e) for e in node.elts])
    else:
        elements = yield in_turn(model_value(cx, content(e)) for e in node.elts)
    span = span.using(cx.uses)
    code = BlockBuilder()
    found = empty_of(own, span, code)
    for element, written in zip(reversed(elements), reversed(node.elts), strict=True):
        if isinstance(written, ast.Starred):
            opened = cx.span(written).desugared(Construct.OPENED)
            concat = GlobalVar(qualified("concat"), span=opened)
            found = Call(concat, (element, found), span=opened)
        else:
            found = longer(element, found, span)
    return code.close(found)


def content(node: ast.expr) -> ast.expr:
    """Return the expression of an element of a display, of `*xs` what it opens."""
    return node.value if isinstance(node, ast.Starred) else node


def comprehension(cx: Context, node: ast.ListComp | ast.GeneratorExp) -> Steps[Expr]:
    """Translate `[e for x in xs if c]`."""
    span, code = cx.span(node), BlockBuilder()
    end = empty_of(cx.displays.pop(node, UNKNOWN), span, code)
    return code.close(turned((yield _collected(cx, node, node.generators, end)), span))


def as_list(cx: Context, node: ast.expr) -> Steps[Expr]:
    """Translate what Python iterates over as a list of its elements."""
    if isinstance(node, ast.List | ast.ListComp):
        return (yield cx.expression(node))
    if isinstance(node, ast.GeneratorExp):
        return (yield comprehension(cx, node))
    return (yield comprehension(cx, _each(node)))


def _each(node: ast.expr) -> ast.GeneratorExp:
    """Return `item for item in node`."""
    item = ast.copy_location(ast.Name("item", ast.Store()), node)
    element = ast.copy_location(ast.Name("item", ast.Load()), node)
    loop = ast.comprehension(item, node, [], 0)
    return ast.copy_location(ast.GeneratorExp(element, [loop]), node)


def searched(cx: Context, node: ast.expr, *, stops_at: bool) -> Steps[Expr]:
    """Translate `any(...)`, which stops at the first element that is true, or `all(...)`, which
    stops at the first that is false."""
    each = node if isinstance(node, ast.GeneratorExp | ast.ListComp) else _each(node)
    return (yield _search(cx, each, each.generators, stops_at=stops_at))


def _search(
    cx: Context,
    node: ast.ListComp | ast.GeneratorExp,
    generators: Sequence[ast.comprehension],
    *,
    stops_at: bool,
) -> Steps[Expr]:
    """Return whether the elements found by the loops from here on are true: of any, or of all."""
    if not generators:
        return (yield condition(cx, node.elt))
    first, *rest = generators
    span = cx.span(first.iter)

    def round_(again: Again) -> Steps[Expr]:
        def inner() -> Steps[Expr]:
            found = yield _search(cx, node, rest, stops_at=stops_at)
            stop = Constant(stops_at, span=span)
            then, otherwise = (stop, again()) if stops_at else (again(), stop)
            return If(found, then, otherwise, span=span)

        def skip() -> Steps[Expr]:
            yield from ()
            return again()

        return (yield _filtered(cx, first.ifs, inner, skip))

    return (yield _loop(cx, first, (), Constant(not stops_at, span=span), round_))


def _collected(
    cx: Context,
    node: ast.ListComp | ast.GeneratorExp,
    generators: Sequence[ast.comprehension],
    found: Expr,
) -> Steps[Expr]:
    """Return the elements found so far with those of the remaining loops in front."""
    if not generators:
        check_kept(cx, node.elt)
        return longer((yield cx.expression(node.elt)), found, cx.span(node.elt))
    first, *rest = generators
    kept = Var("found", span=cx.span(first.iter))

    def round_(again: Again) -> Steps[Expr]:
        def skip() -> Steps[Expr]:
            yield from ()
            return kept

        collected = yield _filtered(cx, first.ifs, lambda: _collected(cx, node, rest, kept), skip)
        return again(collected)

    return (yield _loop(cx, first, ((kept, found),), kept, round_))


Again: TypeAlias = Callable[..., Expr]
"""Returns the call of the next round of a loop, with the values that it carries."""


def _loop(
    cx: Context,
    first: ast.comprehension,
    carried: Sequence[tuple[Var, Expr]],
    end: Expr,
    round_: Callable[[Again], Steps[Expr]],
) -> Steps[Expr]:
    """Return a loop of a comprehension that carries values; `end` is its value after the last
    round, in terms of them."""
    span = cx.span(first.iter)
    around, inside = BlockBuilder(), BlockBuilder()
    counts = counting((yield read_iteration(cx, first.iter, around)), cx.span(first.target), span)
    mark, rounds = cx.env.mark(), cx.rounds
    cx.rounds = {**rounds, **dict.fromkeys(names_of(first.target), span)}
    loop = Var("for_loop", span=span.desugared(Construct.LOOP))
    yield bind_target(cx, first.target, counts.iteration.element(counts.at), inside)
    note_elements(cx, first.target, first.iter)

    def again(*values: Expr) -> Expr:
        return Call(loop, (*(step() for step in counts.steps), *values), span=span)

    body = inside.close((yield round_(again)))
    cx.env.undo(mark)
    cx.rounds = rounds
    whole = If(counts.iteration.test(counts.at, span), body, end, span=span)
    params = (*counts.params, *(v for v, _ in carried))
    function = Function(params, whole, name=loop.name, span=span)
    start = Call(loop, (*counts.first, *(value for _, value in carried)), span=span)
    return around.close(LetBlock((Binding(loop, function),), start, Flavour.REC, span=span))


def _filtered(
    cx: Context, tests: Sequence[ast.expr], then: Continue, otherwise: Continue
) -> Steps[Expr]:
    """Translate the body of a round for which all tests hold, with the names that they narrow."""

    def from_(place: int) -> Steps[Expr]:
        if place == len(tests):
            return (yield then())
        span = cx.span(tests[place])
        return (yield branch(cx, tests[place], lambda: from_(place + 1), otherwise, span))

    return (yield from_(0))
