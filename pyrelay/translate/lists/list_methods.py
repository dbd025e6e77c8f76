"""Methods of lists that change nothing: `xs.index(x)`, `xs.count(x)`, `xs.copy()`."""

from __future__ import annotations

import ast

from ...diagnostics.catalogue.language import Unsupported
from ...ir.expr import Call, Expr
from ...ir.traverse import Steps
from ..program.context import Context
from ..subset.tables import LIST_SEARCHES


def list_method(cx: Context, node: ast.Call, function: ast.Attribute) -> Steps[Expr]:
    """Translate a call of one of the methods."""
    op, span = LIST_SEARCHES.get(function.attr), cx.span(node)
    wanted = 0 if op is None else 1
    if len(node.args) != wanted or node.keywords:
        form = f"`xs.{function.attr}({'x' * wanted})`"
        what = f"`{function.attr}` with these arguments"
        return cx.refuse(Unsupported(span, what, f"write {form}"))
    items = yield cx.expression(function.value)
    if op is None:
        return items
    return Call(op, (items, (yield cx.expression(node.args[0]))), {}, span=span)
