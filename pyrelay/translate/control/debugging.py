"""Code that translation adds to a program for a debugger: the values of local names."""

from __future__ import annotations

from dataclasses import replace

from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.constant import is_placeholder
from ...ir.expr import Call, Expr, Function, Var
from ...ir.traverse import rewrite
from ...operators.host.debugging import debug_line, debug_local
from ..blocks.list_append import turned
from ..calls.mentions import value_of
from ..program.context import Context
from ..program.environment import Bound, Static


def source_functions(cx: Context, body: Expr) -> Expr:
    """Return a body, for a debugger, in which only the functions of the source have names: loops
    and joins are no frames of their own."""
    if not cx.program.is_debugged:
        return body

    def unnamed(expr: Expr) -> Expr:
        is_own = not isinstance(expr, Function) or expr.span in cx.defined
        return expr if is_own else replace(expr, name="")

    return rewrite(body, unnamed)


def note_locals(cx: Context, code: BlockBuilder, stmt: Span) -> None:
    """Note the values of the names that were assigned since the last ones were noted, before or
    after a statement."""
    assigned = dict(cx.assigned)
    cx.assigned.clear()
    if not cx.program.is_debugged:
        return
    for name, place in assigned.items():
        span = stmt if place is None else place
        entry = cx.env.find(name)
        if isinstance(entry, Bound) and _is_shown(entry):
            value = _value(cx, name, entry, span)
            code.bind(Var("_", span=span), Call(debug_local, (value,), {"name": name}, span=span))


def note_line(cx: Context, span: Span, code: BlockBuilder) -> None:
    """Note that a statement begins, after the values of the names assigned before."""
    note_locals(cx, code, span)
    if cx.program.is_debugged:
        code.bind(Var("_", span=span), Call(debug_line, (), {}, span=span))


def _value(cx: Context, name: str, entry: Bound, span: Span) -> Expr:
    value = value_of(cx, entry, name, span)
    return turned(value, span) if name in cx.grown else value


def _is_shown(entry: Bound) -> bool:
    """Return whether a name stands for a value that programs compute with: no function, no
    model."""
    special = (entry.function, entry.model, entry.stream)
    if any(s is not None for s in special):
        return False
    if entry.atom is not None:
        return not is_placeholder(entry.atom)
    return _is_plain(entry.static)


def _is_plain(known: Static | None) -> bool:
    if known is None or not known.exact:
        return False
    return known.value is None or isinstance(known.value, bool | int | float | str)
