"""What a `for` loop runs over: whether there is a round `i`, and what the target is in it.

A loop counts with an integer. `range`, `enumerate`, `zip` and `reversed` are arithmetic on that
counter; an iterable of the caller's is asked for its next element; anything else is indexed along
its first axis.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from ..diagnostics.catalogue.language import Unsupported, WrongArguments
from ..diagnostics.source import Span
from ..ir.expr import Call, Constant, Expr, If, Tuple, Var
from ..ir.ops.arithmetic import add, floor_divide, minimum, multiply, negative, subtract
from ..ir.ops.compare import less
from ..ir.ops.host import dim_size, same_length
from ..ir.ops.index import index
from ..ir.ops.stream import has_next, next_element, start_iteration
from ..ir.traverse import Steps
from .atoms import again, atom, placeholder
from .attributes import static_argument
from .blocks import Code
from .context import Context, in_turn
from .environment import Bound, Holder
from .static import static_value


@final
@dataclass(frozen=True, slots=True)
class Iteration:
    """The rounds of a loop: the element in the round of a counter, and their number, an atom.

    Where the number is known only at the end, `length` is None and `has_next` tells whether there
    is another round. `holder` is where elements may also be held, if outside of the program.
    """

    length: Expr | None
    element: Callable[[Expr], Expr]
    has_next: Callable[[Expr], Expr] | None = None
    holder: Holder | None = None

    def test(self, counter: Expr, span: Span) -> Expr:
        """Give whether there is a round of the number of a counter."""
        if self.has_next is not None:
            return self.has_next(counter)
        assert self.length is not None
        return Call(less, (again(counter), again(self.length)), {}, span=span)


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
    entry = cx.env.find(node.id) if isinstance(node, ast.Name) else None
    if isinstance(entry, Bound) and entry.stream is not None:
        return (yield _over_stream(cx, node, entry.stream, code))
    return (yield _over_axis(cx, node, code))


def _over_stream(
    cx: Context, node: ast.expr, description: tuple[Any, ...], code: Code
) -> Steps[Iteration]:
    span = cx.span(node)
    iterator = Var("iterator", span=span)
    code.bind(iterator, Call(start_iteration, ((yield cx.expression(node)),), {}, span=span))
    return Iteration(
        None,
        lambda _: Call(next_element, (iterator,), {"element": description}, span=span),
        lambda _: Call(has_next, (iterator,), {}, span=span),
        Holder(span, "the caller holds its elements"),
    )


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
    return Iteration(placeholder(cx.span(node)), lambda counter: counter)


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

    return Iteration(inner.length, element, inner.has_next, inner.holder)


def _zip(cx: Context, node: ast.Call, code: Code) -> Steps[Iteration]:
    strict = False
    if [k.arg for k in node.keywords] == ["strict"]:
        strict = bool(static_argument(cx, node.keywords[0].value, "`strict`", "`True` or `False`"))
        node = ast.copy_location(ast.Call(node.func, node.args, []), node)
    if not _arguments(cx, node, "zip", 1, None):
        return _nothing(cx, node)
    span = cx.span(node)
    parts = yield in_turn(read_iteration(cx, a, code) for a in node.args)

    def element(counter: Expr) -> Expr:
        return Tuple(tuple(p.element(counter) for p in parts), span=span)

    lengths = [p.length for p in parts if p.length is not None]
    if len(lengths) < len(parts):
        if strict:
            instead = "leave `strict` out, or stop when one of them ends"
            what = "`zip(strict=True)` of an iterable"
            cx.program.report(Unsupported(span, what, instead))
        holder = next(p.holder for p in parts if p.length is None)
        return Iteration(None, element, lambda counter: _all_next(parts, counter, span), holder)
    length = lengths[0]
    if strict:
        length = Call(same_length, (Tuple(tuple(lengths), span=span),), {}, span=span)
    else:
        for other in lengths[1:]:
            length = Call(minimum, (length, other), {}, span=span)
    return Iteration(atom(length, "length", code.bind), element)


def _all_next(parts: Sequence[Iteration], counter: Expr, span: Span) -> Expr:
    """Ask one after the other, as Python does: what comes after one that has ended is not asked."""
    found = parts[-1].test(counter, span)
    for part in reversed(parts[:-1]):
        found = If(part.test(counter, span), found, Constant(False, span=span), span=span)
    return found


def _reversed(cx: Context, node: ast.Call, code: Code) -> Steps[Iteration]:
    if not _arguments(cx, node, "reversed", 1, 1):
        return _nothing(cx, node)
    span = cx.span(node)
    inner = yield read_iteration(cx, node.args[0], code)
    if inner.length is None:
        instead = "write `reversed` only around `range` and tensors"
        cx.program.report(Unsupported(span, "`reversed` of an iterable", instead))
        return _nothing(cx, node)
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
