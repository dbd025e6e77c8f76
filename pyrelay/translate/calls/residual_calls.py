"""Calls of specialised functions and of functions of texts."""

from __future__ import annotations

import ast

from ...ir.constant import placeholder
from ...ir.expr import Call, Expr
from ...ir.traverse import Steps
from ..names.residuals import residual_mention
from ..program.context import Context
from ..source.residual import Residual
from .arguments import Callee, Slot, argument_values


def residual_call(cx: Context, node: ast.Call, residual: Residual) -> Steps[Expr]:
    """Translate a call of a function that has a program of its own."""
    names = residual.names
    text = f"{residual.name}({', '.join(names)})"
    callee = Callee(residual.name, tuple(Slot(n, required=True) for n in names), text)
    function = residual_mention(cx, residual, cx.span(node.func))
    written = yield argument_values(cx, node, callee)
    if written is None:
        return placeholder(cx.span(node))
    return Call(function, tuple(written[name] for name in names), span=cx.span(node))
