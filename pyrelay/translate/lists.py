"""Lists written out: displays and comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..ir.expr import Binding, Call, Expr, Flavour, Function, If, LetBlock, Var
from ..ir.traverse import Steps
from .assignments import bind_target
from .blocks import Code
from .context import Context
from .flow import names_of
from .growth import chain, empty, longer, turned
from .iteration import counting, read_iteration
from .kept_functions import check_kept


def display(cx: Context, node: ast.List) -> Steps[Expr]:
    """Translate `[a, b]`."""
    elements = yield cx.expressions(node.elts)
    return chain(reversed(elements), cx.span(node))


def comprehension(cx: Context, node: ast.ListComp | ast.GeneratorExp) -> Steps[Expr]:
    """Translate `[e for x in xs if c]`."""
    span = cx.span(node)
    return turned((yield _collected(cx, node, node.generators, empty(span))), span)


def _collected(
    cx: Context,
    node: ast.ListComp | ast.GeneratorExp,
    generators: Sequence[ast.comprehension],
    found: Expr,
) -> Steps[Expr]:
    """Give what has been found with, in front of it, what the loops from here on find."""
    if not generators:
        check_kept(cx, node.elt)
        return longer((yield cx.expression(node.elt)), found, cx.span(node.elt))
    first, *rest = generators
    span = cx.span(first.iter)
    around = Code()
    counts = counting((yield read_iteration(cx, first.iter, around)), cx.span(first.target), span)
    mark, rounds = cx.env.mark(), cx.rounds
    cx.rounds = {**rounds, **dict.fromkeys(names_of(first.target), span)}
    loop, kept = Var("for_loop", span=span), Var("found", span=span)
    inside = Code()
    yield bind_target(cx, first.target, counts.iteration.element(counts.at), inside)
    tests = yield cx.expressions(first.ifs)
    collected = yield _collected(cx, node, rest, kept)
    for test in reversed(tests):
        collected = If(test, collected, kept, span=test.span)
    again = Call(loop, (*(step() for step in counts.steps), collected), span=span)
    cx.env.undo(mark)
    cx.rounds = rounds
    body = If(counts.iteration.test(counts.at, span), inside.close(again), kept, span=span)
    function = Function((*counts.params, kept), body, name=loop.name, span=span)
    start = Call(loop, (*counts.first, found), span=span)
    return around.close(LetBlock((Binding(loop, function),), start, Flavour.REC, span=span))
