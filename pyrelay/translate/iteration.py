"""What a `for` loop runs over: how many rounds, and what the target is in round `i`.

A loop counts with an integer. `range`, `enumerate`, `zip` and `reversed` are arithmetic on that
counter; anything else is indexed along its first axis.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from ..diagnostics.catalogue.language import Unsupported, WrongArguments
from ..diagnostics.source import Span
from ..ir.expr import Call, Constant, Expr, Tuple, Var
from ..ir.ops.arithmetic import add, floor_divide, minimum, multiply, negative, subtract
from ..ir.ops.host import dim_size, same_length
from ..ir.ops.index import index
from ..ir.traverse import Steps
from .atoms import again, atom
from .attributes import static_argument
from .blocks import Code
from .context import Context, in_turn
from .static import static_value


@final
@dataclass(frozen=True, slots=True)
class Iteration:
    """The rounds of a loop: their number, an atom, and the element in the round of a counter."""

    length: Expr
    element: Callable[[Expr], Expr]


def read_iteration(cx: Context, node: ast.expr, code: Code) -> Steps[Iteration]:
    """Give the rounds over an expression; what they need is computed once, before the loop."""
    if isinstance(node, ast.Call):
        known = static_value(cx, node.func)
        called = None if known is None else known.value
        for function, read in _READERS:
            if called is function:
                return (yield read(cx, node, code))
    if isinstance(node, ast.Tuple | ast.List):
        instead = "call a nested function for each, or stack them into one tensor"
        cx.program.report(Unsupported(cx.span(node), "a loop over a tuple", instead))
    return (yield _over_axis(cx, node, code))


def _over_axis(cx: Context, node: ast.expr, code: Code) -> Steps[Iteration]:
    span = cx.span(node)
    items = atom((yield cx.expression(node)), "items", code.bind)
    length = atom(Call(dim_size, (items,), {"dim": 0}, span=span), "length", code.bind)

    def element(counter: Expr) -> Expr:
        indices = Tuple((counter,), span=span)
        return Call(index, (items, indices), {"spec": (("int", 0),)}, span=span)

    return Iteration(length, element)


def _arguments(cx: Context, node: ast.Call, name: str, low: int, high: int | None) -> bool:
    count = len(node.args)
    if not node.keywords and count >= low and (high is None or count <= high):
        return True
    cx.program.report(
        WrongArguments(cx.span(node), name, "does not take these arguments", f"Python's `{name}`")
    )
    return False


def _nothing(cx: Context, node: ast.Call) -> Iteration:
    """Give a placeholder after a mistake."""
    return Iteration(Constant(0, span=cx.span(node)), lambda counter: counter)


def _range(cx: Context, node: ast.Call, code: Code) -> Steps[Iteration]:
    if not _arguments(cx, node, "range", 1, 3):
        return _nothing(cx, node)
    span = cx.span(node)
    values = [atom(e, "bound", code.bind) for e in (yield cx.expressions(node.args))]
    if len(values) == 1:
        return Iteration(values[0], again)
    start, stop = values[:2]
    if len(values) == 2:
        length = Call(subtract, (stop, again(start)), {}, span=span)
        return Iteration(
            atom(length, "length", code.bind), lambda counter: _plus(start, counter, span)
        )
    step = values[2]
    # ceil((stop - start) / step), for steps up and down; not positive means no round.
    distance = Call(subtract, (again(start), stop), {}, span=span)
    whole = Call(floor_divide, (distance, again(step)), {}, span=span)
    length = atom(Call(negative, (whole,), {}, span=span), "length", code.bind)
    return Iteration(
        length,
        lambda counter: _plus(start, Call(multiply, (counter, again(step)), {}, span=span), span),
    )


def _plus(left: Expr, right: Expr, span: Span) -> Expr:
    return Call(add, (again(left), right), {}, span=span)


def _enumerate(cx: Context, node: ast.Call, code: Code) -> Steps[Iteration]:
    if not _arguments(cx, node, "enumerate", 1, 2):
        return _nothing(cx, node)
    span = cx.span(node)
    inner = yield read_iteration(cx, node.args[0], code)
    start: Expr | None = None
    if len(node.args) > 1:
        start = atom((yield cx.expression(node.args[1])), "start", code.bind)

    def element(counter: Expr) -> Expr:
        number = counter if start is None else _plus(start, counter, span)
        return Tuple((number, inner.element(counter)), span=span)

    return Iteration(inner.length, element)


def _zip(cx: Context, node: ast.Call, code: Code) -> Steps[Iteration]:
    strict = False
    if [k.arg for k in node.keywords] == ["strict"]:
        strict = bool(static_argument(cx, node.keywords[0].value, "`strict`", "`True` or `False`"))
        node = ast.copy_location(ast.Call(node.func, node.args, []), node)
    if not _arguments(cx, node, "zip", 1, None):
        return _nothing(cx, node)
    span = cx.span(node)
    parts = yield in_turn(read_iteration(cx, a, code) for a in node.args)
    length = parts[0].length
    if strict:
        sizes = Tuple(tuple(p.length for p in parts), span=span)
        length = Call(same_length, (sizes,), {}, span=span)
    else:
        for part in parts[1:]:
            length = Call(minimum, (length, part.length), {}, span=span)
    length = atom(length, "length", code.bind)
    return Iteration(
        length, lambda counter: Tuple(tuple(p.element(counter) for p in parts), span=span)
    )


def _reversed(cx: Context, node: ast.Call, code: Code) -> Steps[Iteration]:
    if not _arguments(cx, node, "reversed", 1, 1):
        return _nothing(cx, node)
    span = cx.span(node)
    inner = yield read_iteration(cx, node.args[0], code)
    one = Constant(1, span=span)
    last = atom(Call(subtract, (again(inner.length), one), {}, span=span), "last", code.bind)

    def element(counter: Expr) -> Expr:
        place = Var("place", span=span)
        back = Call(subtract, (last, counter), {}, span=span)
        made = inner.element(place)
        if made is place:
            return back
        inside = Code()
        inside.bind(place, back)
        return inside.close(made)

    return Iteration(inner.length, element)


_READERS: Sequence[tuple[object, Callable[[Context, ast.Call, Code], Steps[Iteration]]]] = (
    (builtins.range, _range),
    (builtins.enumerate, _enumerate),
    (builtins.zip, _zip),
    (builtins.reversed, _reversed),
)
