"""Lists written out: displays and comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..ir.expr import Binding, Call, Expr, Flavour, Function, GlobalVar, If, LetBlock, Var
from ..ir.traverse import Steps
from ..ir.types import UNKNOWN
from ..prelude.library import qualified
from .assignments import bind_target
from .blocks import Code
from .context import Context
from .flow import names_of
from .growth import empty_of, longer, turned
from .iteration import counting, read_iteration
from .kept_functions import check_kept
from .optional_parts import element_type, inner_displays


def display(cx: Context, node: ast.List) -> Steps[Expr]:
    """Translate `[a, b]` and `[a, *xs]`."""
    span = cx.span(node)
    own = cx.displays.pop(node, None) or element_type(node.elts)
    cx.displays.update(inner_displays(node.elts, own))
    elements = yield cx.expressions([content(e) for e in node.elts])
    code = Code()
    found = empty_of(own, span, code)
    for element, written in zip(reversed(elements), reversed(node.elts), strict=True):
        if isinstance(written, ast.Starred):
            concat = GlobalVar(qualified("concat"), span=cx.span(written))
            found = Call(concat, (element, found), span=cx.span(written))
        else:
            found = longer(element, found, span)
    return code.close(found)


def content(node: ast.expr) -> ast.expr:
    """Give the expression of an element of a display, of `*xs` what it opens."""
    return node.value if isinstance(node, ast.Starred) else node


def comprehension(cx: Context, node: ast.ListComp | ast.GeneratorExp) -> Steps[Expr]:
    """Translate `[e for x in xs if c]`."""
    span, code = cx.span(node), Code()
    end = empty_of(cx.displays.pop(node, UNKNOWN), span, code)
    return code.close(turned((yield _collected(cx, node, node.generators, end)), span))


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
