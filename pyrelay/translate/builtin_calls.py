"""Calls of Python's own functions that are more than one operator: `min`, `sum`, `print` ..."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable
from typing import Any, Final

from ..diagnostics.catalogue.language import NotStatic, Unsupported, WrongArguments
from ..ir.expr import Call, Constant, Expr, Tuple
from ..ir.op import Op
from ..ir.ops import arithmetic, extrema, host, reduce
from ..ir.ops import math as math_ops
from ..ir.traverse import Steps
from .attributes import static_argument
from .context import Context
from .static import static_value

Handler = Callable[[Context, ast.Call], Steps[Expr]]


def _exactly(cx: Context, node: ast.Call, name: str, low: int, high: int) -> bool:
    count = len(node.args)
    if low <= count <= high and not node.keywords:
        return True
    wanted = str(low) if low == high else f"{low} or {high}"
    why = f"takes {wanted} argument{'s' if wanted != '1' else ''} here, by position"
    cx.program.report(WrongArguments(cx.span(node), name, why, f"Python's `{name}`"))
    return False


def _of_several(pairwise: Op, reduction: Op) -> Handler:
    """Give the handler of `min` or `max`: of several values, or of one tensor."""

    def handle(cx: Context, node: ast.Call) -> Steps[Expr]:
        span = cx.span(node)
        if node.keywords or not node.args:
            _exactly(cx, node, pairwise.name, 1, 2)
            return Constant(0, span=span)
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
        return Constant(0, span=span)
    values = yield cx.expressions(node.args)
    attrs = {"dim": (0,), "keepdim": False, "dtype": None}
    total = Call(reduce.sum_, values[:1], attrs, span=span)
    return Call(arithmetic.add, (values[1], total), {}, span=span) if len(values) > 1 else total


def _len(cx: Context, node: ast.Call) -> Steps[Expr]:
    span = cx.span(node)
    if not _exactly(cx, node, "len", 1, 1):
        return Constant(0, span=span)
    value = yield cx.expression(node.args[0])
    return Call(host.dim_size, (value,), {"dim": 0}, span=span)


def _round(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `round`: to an integer, or to a number of decimals."""
    span = cx.span(node)
    if not _exactly(cx, node, "round", 1, 2):
        return Constant(0, span=span)
    value = yield cx.expression(node.args[0])
    if len(node.args) == 1:
        rounded = Call(math_ops.round_, (value,), {"decimals": 0}, span=span)
        return Call(host.to_int, (rounded,), {}, span=span)
    decimals = static_argument(cx, node.args[1], "the number of decimals", "a number")
    return Call(math_ops.round_, (value,), {"decimals": decimals}, span=span)


def _to_integer(op: Op) -> Handler:
    """Give the handler of `math.floor` or `math.ceil`, whose results are integers."""

    def handle(cx: Context, node: ast.Call) -> Steps[Expr]:
        span = cx.span(node)
        if not _exactly(cx, node, op.name, 1, 1):
            return Constant(0, span=span)
        value = yield cx.expression(node.args[0])
        return Call(host.to_int, (Call(op, (value,), {}, span=span),), {}, span=span)

    return handle


def _log(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `math.log(x)` and `math.log(x, base)`."""
    span = cx.span(node)
    if not _exactly(cx, node, "log", 1, 2):
        return Constant(0, span=span)
    values = yield cx.expressions(node.args)
    logs = tuple(Call(math_ops.log, (v,), {}, span=span) for v in values)
    return logs[0] if len(logs) == 1 else Call(arithmetic.divide, logs, {}, span=span)


def _print(cx: Context, node: ast.Call) -> Steps[Expr]:
    span = cx.span(node)
    separator: Any = " "
    for keyword in node.keywords:
        if keyword.arg == "sep":
            separator = static_argument(cx, keyword.value, "`sep`", 'a string such as `", "`')
        else:
            why = f"takes no `{keyword.arg}` in compiled code"
            problem = WrongArguments(cx.span(keyword), "print", why, 'print(*values, sep=" ")')
            cx.program.report(problem)
    has_text = any(isinstance(a, ast.JoinedStr) for a in node.args)
    values: list[Expr] = []
    for place, argument in enumerate(node.args):
        if place and has_text and separator:
            values.append(Constant(separator, span=span))
        values += yield _pieces(cx, argument)
    attrs = {"sep": "" if has_text else separator}
    return Call(host.print_, (Tuple(tuple(values), span=span),), attrs, span=span)


def _pieces(cx: Context, node: ast.expr) -> Steps[list[Expr]]:
    """Give what an argument of print shows: the parts of an f-string one by one."""
    if not isinstance(node, ast.JoinedStr):
        return [(yield text_or_value(cx, node))]
    found: list[Expr] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            if part.format_spec is not None or part.conversion != -1:
                instead = "leave it out, or round the value: `round(x, 3)`"
                cx.program.report(Unsupported(cx.span(node), "a format in an f-string", instead))
            found.append((yield text_or_value(cx, part.value)))
        else:
            found.append((yield text_or_value(cx, part)))
    return found


def text_or_value(cx: Context, node: ast.expr) -> Steps[Expr]:
    """Translate an argument of print: any value, strings included."""
    known = static_value(cx, node)
    if known is not None and known.exact and isinstance(known.value, str):
        return Constant(known.value, span=cx.span(node))
    return (yield cx.expression(node))


def message(cx: Context, node: ast.expr | None, otherwise: str) -> str:
    """Give the text of an `assert` or `raise`, which is known before the program runs."""
    if node is None:
        return otherwise
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    found: list[str] = []
    for part in parts:
        inside = part.value if isinstance(part, ast.FormattedValue) else part
        known = static_value(cx, inside)
        if known is None:
            wanted = "a text without values, and `print` the values before"
            cx.program.report(NotStatic(cx.span(node), "a message", wanted))
            return otherwise
        found.append(str(known.value))
    return "".join(found)


CALLS: Final[dict[Callable[..., Any], Handler]] = {
    builtins.len: _len,
    builtins.max: _of_several(arithmetic.maximum, extrema.amax),
    builtins.min: _of_several(arithmetic.minimum, extrema.amin),
    builtins.print: _print,
    builtins.round: _round,
    builtins.sum: _sum,
    math.ceil: _to_integer(math_ops.ceil),
    math.floor: _to_integer(math_ops.floor),
    math.log: _log,
}
"""The functions of Python that need a translation of their own."""

IN_LOOPS: Final = (builtins.enumerate, builtins.range, builtins.reversed, builtins.zip)
"""What only a `for` statement may call."""
