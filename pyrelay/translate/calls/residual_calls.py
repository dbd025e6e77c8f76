"""Mentions and calls of specialised functions and of functions of texts.

Their programs become part of the program.
"""

from __future__ import annotations

import ast

from ...diagnostics.catalogue.captures import CapturedObject
from ...diagnostics.source import Span
from ...ir.constant import placeholder
from ...ir.expr import Call, Expr, Function, GlobalVar, Var
from ...ir.module import Module
from ...ir.rename import rename
from ...ir.traverse import Steps
from ...prelude.library import library
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


def residual_mention(cx: Context, residual: Residual, span: Span) -> Expr:
    """Return a function that has a program of its own as a value."""
    if None in residual.fixed:
        kind = "specialised function with a tensor that requires a gradient"
        instead = "pass the tensor as an argument of the function"
        return cx.refuse(CapturedObject(span, residual.name, kind, instead))
    callee = GlobalVar(_linked(cx, residual, span), span=span)
    if not residual.fixed:
        return callee
    params = tuple(Var(name, span=span) for name in residual.names)
    fixed = (c for c in residual.fixed if c is not None)
    return Function(params, Call(callee, (*params, *fixed), span=span), span=span)


def _linked(cx: Context, residual: Residual, span: Span) -> str:
    """Return the name under which the program has the entry of a function with its own program."""
    program = cx.program
    if residual in program.residuals:
        return program.residuals[residual]
    module, known = residual.module, library()
    names = {n: program.fresh_name(n) for n in module.functions}
    names |= {n: n for n, adt in known.adts.items() if module.adts.get(n, adt) == adt}
    for name, classes in residual.classes.items():
        for cls in classes:
            constructor = cx.constructor(cls, span)
            names[name] = name if constructor is None else constructor.adt
    for name, made in residual.made.items():
        names[name] = program.data.adopted(module.adts[name], made)
    names |= {n: program.data.fresh_name(n) for n in module.adts if n not in names}
    known_here = {*known.adts, *program.data.adts}
    own = [n for n in module.adts if names[n] not in known_here]
    taken = Module(dict(module.functions), {n: module.adts[n] for n in own})
    added = rename(taken, names.__getitem__)
    program.functions.update(added.functions)
    program.data.adts.update(added.adts)
    program.residuals[residual] = names[residual.entry]
    return names[residual.entry]
