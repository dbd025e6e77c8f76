"""Static arguments of operators: known values, or expressions whose size inference reads."""

from __future__ import annotations

import ast
from typing import Any

from ..diagnostics.catalogue.language import BadValue, CapturedObject, NotStatic
from ..ir.expr import Expr
from ..ir.op import Param
from ..ir.traverse import Steps
from ..ir.types import DType
from .context import Context, in_turn
from .definition import meaning
from .scope import is_data
from .static import static_value


def attribute_value(cx: Context, node: ast.expr, param: Param, operator: str) -> Steps[Any]:
    """Give a static argument in its normal form; what only the running program knows stays an
    expression, of which inference reads the size."""
    value = yield _value(cx, node)
    if _has_expr(value) or param.convert is None:
        return value
    try:
        return param.convert(value)
    except (TypeError, ValueError) as error:
        what = f"`{param.name}` of `{operator}` cannot be {value!r}"
        cx.program.report(BadValue(cx.span(node), what, str(error)))
        return value


def _value(cx: Context, node: ast.expr) -> Steps[Any]:
    known = static_value(cx, node)
    if known is not None:
        found = meaning(known.value)
        value = found if isinstance(found, DType) else known.value
        if isinstance(value, list):
            value = tuple(value)
        if known.exact and (is_data(value) or isinstance(value, DType)):
            return value
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(value, tuple):
            return (yield cx.expression(node))
        kind = type(value).__name__
        cx.program.report(
            CapturedObject(
                cx.span(node), ast.unparse(node), kind, "pass numbers, strings, tuples or sizes"
            )
        )
        return None
    if isinstance(node, ast.Tuple | ast.List):
        return tuple((yield in_turn(_value(cx, element) for element in node.elts)))
    return (yield cx.expression(node))


def _has_expr(value: Any) -> bool:
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, Expr):
            return True
        if isinstance(current, tuple):
            pending += current
    return False


def static_argument(cx: Context, node: ast.expr, what: str, wanted: str) -> Any:
    """Give an argument that must be known before running; None when it is not, which is
    reported."""
    known = static_value(cx, node)
    if known is None or not known.exact or not is_data(known.value):
        cx.program.report(NotStatic(cx.span(node), what, wanted))
        return None
    return known.value
