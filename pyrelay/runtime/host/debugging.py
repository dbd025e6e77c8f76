"""Host code that a debugger steps through: breakpoints, and the local names of the source.

A name of the source is a Python variable of its own beside those of the program, assigned where
the source assigns it, so branches and loops leave it as Python would.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from ...diagnostics.source import Span
from ...ir.dims import Dim
from ...ir.expr import Call, Expr, Function, LetBlock, Tuple, TupleGet, Var, is_atom, type_of
from ...ir.traverse import post_order
from ...ir.types import UNIT, AdtType, TupleType, Type
from ...kernels.function_plan import FunctionPlan
from ...operators.host.debugging import breakpoint_, debug_line, debug_local, is_debugging
from ...operators.primitive.compare import cast
from ...prelude.names import LIST
from ..values.structure import elements
from .debugger import debugger, hide_frames
from .writer import Writer


def source_names(plan: FunctionPlan, function: Function) -> dict[str, Var | None]:
    """Return the local names of the source in a function, each with the one variable that has all
    its values, or None: a loop moves its parameters on before the source does."""
    found: dict[str, Var | None] = {}
    moved: set[Var] = set()
    for node in post_order(function):
        if isinstance(node, Function) and plan.by_function[node].place is not None:
            moved.update(node.params)
        if not isinstance(node, Call) or node.callee is not debug_local:
            continue
        name, value = node.attrs["name"], node.args[0]
        var = value if isinstance(value, Var) and _shown(type_of(value)) is None else None
        found[name] = var if found.get(name, var) is var else None
    # The name of a local function is that of its code, unless it also has other values.
    functions = {name for name, var in found.items() if var in plan.by_var}
    return {n: None if v in moved else v for n, v in found.items() if n not in functions}


def first_line(function: Function) -> Span:
    """Return where the code of a function begins: at its first statement, for a debugger."""
    body = function.body
    first = body.bindings[0].value if isinstance(body, LetBlock) else body
    return first.span if is_debugging(first) else function.span


def write_debugging(writer: Writer, call: Call) -> None:
    """Write a breakpoint, or the assignment to a name of the source."""
    code = writer.code
    code.at(call.span)
    if call.callee is debug_line:
        writer.emit(code.nothing())
        return
    if call.callee is breakpoint_:
        hook = code.call(code.name(writer.program.pool.data("debug__ger", debugger)), [])
        writer.emit(code.evaluate(code.call(hook, [])))
        return
    name = call.attrs["name"]
    if not writer.names.has_source(name):
        return
    (value,), ty = writer.nodes(call.args), type_of(call.args[0])
    shown = _shown(ty)
    if ty == UNIT:
        value = code.literal(None)
    elif shown is not None:
        value = code.call(code.name(writer.program.pool.data("debug__shown", shown)), [value])
    name = writer.names.source(name)
    if not (isinstance(value, ast.Name) and value.id == name):
        writer.assign(name, value)


def is_written(expr: Expr) -> bool:
    """Return whether the source computes something where an expression stands: not where it names a
    value, takes one apart, or has it in another dtype."""
    if is_atom(expr) or isinstance(expr, Tuple | TupleGet):
        return False
    if isinstance(expr, Call) and expr.callee is cast:
        return expr.span != expr.args[0].span
    return True


def leave_lines(writer: Writer, block: LetBlock, place: int) -> None:
    """Move on from the lines of a branch or loop, to that of the next statement: what only takes
    its value apart stands nowhere in the source."""
    for value in _values_after(block, place):
        if isinstance(value, Call) and value.callee is debug_line:
            writer.code.at(value.span)
            return
        if not isinstance(value, TupleGet):
            break
    writer.code.at(block.bindings[place].value.span)


def _values_after(block: LetBlock, place: int) -> Iterator[Expr]:
    yield from (b.value for b in islice(block.bindings, place + 1, None))
    body = block.body
    while isinstance(body, LetBlock):
        yield from (b.value for b in body.bindings)
        body = body.body


def show_globals(namespace: dict[str, Any], file: str) -> None:
    """Add what the user's module has under names of its own, for expressions at a prompt, whose
    stack has no frames of the compiler."""
    hide_frames()
    modules = (m for m in [*sys.modules.values()] if getattr(m, "__file__", None) == file)
    for name, value in [item for m in modules for item in vars(m).items()]:
        if not name.startswith("__"):
            namespace.setdefault(name, value)


def _shown(ty: Type) -> Callable[[Any], Any] | None:
    """Return how values of a type are shown that are not as the source has them: lists."""
    match ty:
        case AdtType(name, (element,)) if name == LIST:
            inner = _shown(element) if not isinstance(element, Dim) else None
            return lambda value: [v if inner is None else inner(v) for v in elements(value)]
        case TupleType(fields):
            parts = [_shown(f) for f in fields]
            if all(p is None for p in parts):
                return None
            return lambda value: tuple(
                v if p is None else p(v) for v, p in zip(value, parts, strict=True)
            )
        case _:
            return None
