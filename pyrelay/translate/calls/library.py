"""Names of the prelude in a program: calls of its functions and constructors, and mentions."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ...diagnostics.source import Span
from ...ir.constant import placeholder
from ...ir.expr import Call, Constructor, Expr, Function, GlobalVar, Var
from ...ir.traverse import Steps
from ...ir.types import PRELUDE
from ...prelude.library import fails, library
from ...prelude.names import LibraryConstructor, LibraryFunction, LibraryValue
from ..program.context import Context
from .arguments import Callee, Slot, argument_values, in_order


def library_call(cx: Context, node: ast.Call, value: LibraryValue) -> Steps[Expr]:
    """Translate a call of a function or constructor of the prelude."""
    span = cx.span(node)
    callee = _callee(value)
    written = yield argument_values(cx, node, callee)
    if written is None:
        return placeholder(span)

    def call(args: Mapping[str, Expr]) -> Expr:
        operands = tuple(args[s.name] for s in callee.slots)
        return Call(_reference(value, cx.span(node.func)), operands, span=span)

    return in_order(written, [s.name for s in callee.slots], call)


def library_mention(value: LibraryValue, span: Span) -> Expr:
    """Return a function or constructor of the prelude as a value."""
    if isinstance(value, LibraryFunction) and fails(value.name):
        # Called where it is mentioned, so that this is the place of the error.
        names = [s.name for s in _callee(value).slots]
        params = tuple(Var(n, span=span) for n in names)
        return Function(params, Call(_reference(value, span), params, span=span), span=span)
    return _reference(value, span)


def _reference(value: LibraryValue, span: Span) -> Expr:
    match value:
        case LibraryFunction(name):
            return GlobalVar(name, span=span)
        case LibraryConstructor(adt, name):
            return Constructor(adt, name, span=span)


def _callee(value: LibraryValue) -> Callee:
    match value:
        case LibraryFunction(name):
            names = tuple(p.name for p in library().functions[name].params)
        case LibraryConstructor(name=name, fields=names):
            pass
    shown = name.removeprefix(PRELUDE)
    slots = tuple(Slot(n, required=True) for n in names)
    return Callee(shown, slots, f"{shown}({', '.join(names)})")
