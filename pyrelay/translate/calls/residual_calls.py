"""Calls of specialised functions and of functions of texts."""

from __future__ import annotations

import ast

from ...ir.constant import placeholder
from ...ir.expr import Call, Expr
from ...ir.traverse import Steps
from ..names.residuals import residual_mention
from ..program.context import Context, in_turn
from ..source.residual import Residual
from .arguments import Callee, Slot, match_arguments, require


def residual_call(cx: Context, node: ast.Call, residual: Residual) -> Steps[Expr]:
    """Translate a call of a function that has a program of its own."""
    names = residual.names
    text = f"{residual.name}({', '.join(names)})"
    callee = Callee(residual.name, tuple(Slot(n, required=True) for n in names), text)
    function = residual_mention(cx, residual, cx.span(node.func))
    found = match_arguments(cx, node, callee)
    if found is None or not require(cx, node, callee, found):
        return placeholder(cx.span(node))
    values = yield in_turn(cx.expression(found[name]) for name in found)
    by_name = dict(zip(found, values, strict=True))
    return Call(function, tuple(by_name[name] for name in names), span=cx.span(node))
