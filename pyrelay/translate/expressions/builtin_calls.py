"""Calls of Python's own functions that are more than one operator: `min`, `sum`, `print` ..."""

from __future__ import annotations

import ast
import builtins
import itertools
import math
from collections.abc import Callable
from typing import Any, Final

from ...diagnostics.catalogue.signatures import WrongArguments
from ...ir.constant import placeholder
from ...ir.expr import Call, Constant, Expr, Tuple
from ...ir.op import Op
from ...ir.traverse import Steps
from ...operators.host import conversions, sizes
from ...operators.host.debugging import breakpoint_
from ...operators.host.text import print_
from ...operators.primitive import arithmetic, extrema, reduce
from ...operators.primitive import math as math_ops
from ..blocks.conditions import as_value
from ..blocks.list_append import empty, grown_value
from ..calls.attributes import static_argument
from ..calls.strings import read_text
from ..lists.lists import as_list, searched
from ..lists.ordering import Extreme, extreme_call, sorted_call
from ..names.static import static_value
from ..program.context import Context, in_turn
from .method_calls import special_use
from .operators import operator_call

Handler = Callable[[Context, ast.Call], Steps[Expr]]


def _exactly(cx: Context, node: ast.Call, name: str, low: int, high: int) -> bool:
    count = len(node.args)
    if low <= count <= high and not node.keywords:
        return True
    wanted = str(low) if low == high else f"{low} or {high}"
    why = f"takes {wanted} argument{'s' if wanted != '1' else ''} here, by position"
    cx.program.report(WrongArguments(cx.span(node), name, why, f"Python's `{name}`"))
    return False


def _is_made(cx: Context, node: ast.expr) -> bool:
    """Return whether an argument is a generator expression or a call such as `enumerate(xs)`, which
    Python iterates over and which is no value otherwise."""
    known = static_value(cx, node.func) if isinstance(node, ast.Call) else None
    is_call = known is not None and any(known.value is f for f in IN_LOOPS)
    return is_call or isinstance(node, ast.GeneratorExp)


def _of_several(name: Extreme, pairwise: Op, reduction: Op) -> Handler:
    """Return the handler of `min` or `max`: of several values, or of one tensor."""

    def handle(cx: Context, node: ast.Call) -> Steps[Expr]:
        span = cx.span(node)
        if node.keywords or not node.args:
            return (yield extreme_call(cx, node, name))
        if len(node.args) == 1 and _is_made(cx, node.args[0]):
            items = yield as_list(cx, node.args[0])
            return Call(reduction, (items,), {"dim": None, "keepdim": False}, span=span)
        values = yield cx.expressions(node.args)
        if len(values) == 1:
            return Call(reduction, values, {"dim": None, "keepdim": False}, span=span)
        result = values[0]
        for value in values[1:]:
            result = Call(pairwise, (result, value), {}, span=span)
        return result

    return handle


def _sum(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `sum(x)`: over the first dim, as Python adds what it iterates over."""
    span = cx.span(node)
    if not _exactly(cx, node, "sum", 1, 2):
        return placeholder(span)
    first = yield (
        as_list(cx, node.args[0]) if _is_made(cx, node.args[0]) else cx.expression(node.args[0])
    )
    values = (first, *(yield cx.expressions(node.args[1:])))
    attrs = {"dim": (0,), "keepdim": False, "dtype": None}
    total = Call(reduce.sum_, values[:1], attrs, span=span)
    return Call(arithmetic.add, (values[1], total), {}, span=span) if len(values) > 1 else total


def _len(cx: Context, node: ast.Call) -> Steps[Expr]:
    span = cx.span(node)
    if not _exactly(cx, node, "len", 1, 1):
        return placeholder(span)
    if isinstance(node.args[0], ast.Attribute) and node.args[0].attr == "shape":
        tensor = yield cx.expression(node.args[0].value)
        return Call(sizes.rank, (tensor,), {}, span=span)

    def plain(operand: ast.expr) -> Steps[Expr]:
        value = grown_value(cx, operand) or (yield cx.expression(operand))
        return Call(sizes.dim_size, (value,), {"dim": 0}, span=span)

    return (yield special_use(cx, node, "__len__", node.args, plain))


def _list(name: str) -> Handler:
    """Return the handler of `list(xs)`, a list of what a loop over `xs` finds, or `tuple(xs)`."""

    def handle(cx: Context, node: ast.Call) -> Steps[Expr]:
        if not node.args and not node.keywords:
            return empty(cx.span(node))
        if not _exactly(cx, node, name, 1, 1):
            return placeholder(cx.span(node))
        return (yield as_list(cx, node.args[0]))

    return handle


def _search(name: str, *, stops_at: bool) -> Handler:
    """Return the handler of `any` or `all`."""

    def handle(cx: Context, node: ast.Call) -> Steps[Expr]:
        if not _exactly(cx, node, name, 1, 1):
            return placeholder(cx.span(node))
        return (yield searched(cx, node.args[0], stops_at=stops_at))

    return handle


def _round(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `round`: to an integer, or to a number of decimals."""
    span = cx.span(node)
    if not _exactly(cx, node, "round", 1, 2):
        return placeholder(span)
    value = yield cx.expression(node.args[0])
    if len(node.args) == 1:
        rounded = Call(math_ops.round_, (value,), {"decimals": 0}, span=span)
        return Call(conversions.to_int, (rounded,), {}, span=span)
    decimals = static_argument(cx, node.args[1], "the number of decimals", "a number")
    return Call(math_ops.round_, (value,), {"decimals": decimals}, span=span)


def _to_integer(op: Op) -> Handler:
    """Return the handler of `math.floor` or `math.ceil`, whose results are integers."""

    def handle(cx: Context, node: ast.Call) -> Steps[Expr]:
        span = cx.span(node)
        if not _exactly(cx, node, op.name, 1, 1):
            return placeholder(span)
        value = yield cx.expression(node.args[0])
        return Call(conversions.to_int, (Call(op, (value,), {}, span=span),), {}, span=span)

    return handle


def _number(op: Op) -> Handler:
    """Return the handler of `float` or `int`: of a number, or of a text that is known to be one."""

    def handle(cx: Context, node: ast.Call) -> Steps[Expr]:
        given = static_value(cx, node.args[0]) if len(node.args) == 1 else None
        if given is not None and isinstance(given.value, str):
            found = static_value(cx, node)
            if found is not None and found.exact:
                return Constant(found.value, span=cx.span(node))
        return (yield operator_call(cx, node, op))

    return handle


def _log(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `math.log(x)` and `math.log(x, base)`."""
    span = cx.span(node)
    if not _exactly(cx, node, "log", 1, 2):
        return placeholder(span)
    values = yield cx.expressions(node.args)
    logs = tuple(Call(math_ops.log, (v,), {}, span=span) for v in values)
    return logs[0] if len(logs) == 1 else Call(arithmetic.divide, logs, {}, span=span)


_PRINT_OPTIONS: Final = {
    "sep": 'a string such as `", "`',
    "end": 'a string such as `"\\n"`',
    "flush": "`True` or `False`",
}


def _print(cx: Context, node: ast.Call) -> Steps[Expr]:
    span = cx.span(node)
    attrs: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg in _PRINT_OPTIONS:
            what, wanted = f"`{keyword.arg}`", _PRINT_OPTIONS[keyword.arg]
            attrs[keyword.arg] = static_argument(cx, keyword.value, what, wanted)
        else:
            why = f"takes no `{keyword.arg}` in compiled code"
            text = 'print(*values, sep=" ", end="\\n", flush=False)'
            cx.program.report(WrongArguments(cx.span(keyword), "print", why, text))
    values = yield in_turn(_shown(cx, a) for a in node.args)
    return Call(print_, (Tuple(tuple(values), span=span),), attrs, span=span)


def _breakpoint(cx: Context, node: ast.Call) -> Steps[Expr]:
    yield from ()
    span = cx.span(node)
    cx.program.has_breakpoint = True
    if not _exactly(cx, node, "breakpoint", 0, 0):
        return placeholder(span)
    return Call(breakpoint_, (), {}, span=span)


def _shown(cx: Context, node: ast.expr) -> Steps[Expr]:
    """Translate what `print` shows: a number that is known as Python writes it."""
    found = yield read_text(cx, node)
    is_text = isinstance(node, ast.JoinedStr) or found.known is not None
    return found.expression(cx.span(node)) if is_text else found.values[0]


def _as_text(conversion: str) -> Handler:
    """Return the handler of `str` or `repr`."""

    def handle(cx: Context, node: ast.Call) -> Steps[Expr]:
        span = cx.span(node)
        if not _exactly(cx, node, "repr" if conversion else "str", 1, 1):
            return placeholder(span)
        return (yield read_text(cx, node.args[0], conversion)).expression(span)

    return handle


def _isinstance(cx: Context, node: ast.Call) -> Steps[Expr]:
    if not _exactly(cx, node, "isinstance", 2, 2):
        return placeholder(cx.span(node))
    return (yield as_value(cx, node))


CALLS: Final[dict[Callable[..., Any], Handler]] = {
    builtins.breakpoint: _breakpoint,
    builtins.all: _search("all", stops_at=False),
    builtins.any: _search("any", stops_at=True),
    builtins.float: _number(conversions.to_float),
    builtins.int: _number(conversions.to_int),
    builtins.isinstance: _isinstance,
    builtins.len: _len,
    builtins.list: _list("list"),
    builtins.max: _of_several("max", arithmetic.maximum, extrema.amax),
    builtins.min: _of_several("min", arithmetic.minimum, extrema.amin),
    builtins.print: _print,
    builtins.repr: _as_text("r"),
    builtins.round: _round,
    builtins.sorted: sorted_call,
    builtins.str: _as_text(""),
    builtins.sum: _sum,
    builtins.tuple: _list("tuple"),
    math.ceil: _to_integer(math_ops.ceil),
    math.floor: _to_integer(math_ops.floor),
    math.log: _log,
}
"""The functions of Python that need a translation of their own."""

IN_LOOPS: Final = (
    builtins.enumerate,
    builtins.filter,
    builtins.map,
    builtins.range,
    builtins.reversed,
    builtins.zip,
    itertools.pairwise,
)
"""Builtins that only a `for` statement may call."""
