"""Nested functions and lambdas: functions that capture the local names around them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ...diagnostics.source import Span
from ...ir.expr import Expr, Function, Var
from ...ir.traverse import Steps
from ...ir.types import SizeType, Type
from ..calls.passed_models import annotated_record
from ..names.data_names import data_names
from ..program.context import Context
from ..program.environment import Bound, Unbound
from ..program.streams import stream_of
from ..source.flow import Nested, locals_of, reads
from ..source.syntax import parameter_nodes
from ..types.annotation import Annotation, type_names
from .list_append import grown_inside

Body: TypeAlias = Callable[[Context, ast.FunctionDef], Steps[Expr]]
"""Translates the statements of a nested `def`."""


def local_function(cx: Context, node: Nested) -> Steps[Function]:
    """Translate a nested function; its parameters need no annotations."""
    mark = cx.env.mark()
    captured, cx.captured = cx.captured, {}
    rounds, cx.rounds = cx.rounds, {}
    data, cx.holding_data = cx.holding_data, _holding_data(cx, node)
    grown, cx.grown = cx.grown, grown_inside(node, cx.grown, cx.holding_data)
    try:
        return (yield _function(cx, node))
    finally:
        cx.env.undo(mark)
        cx.captured, cx.grown, cx.rounds, cx.holding_data = captured, grown, rounds, data


def _holding_data(cx: Context, node: Nested) -> Mapping[str, Type]:
    hidden = locals_of(node)
    around = {n: ty for n, ty in cx.holding_data.items() if n not in hidden}
    return data_names(cx, [] if isinstance(node, ast.Lambda) else node.body, around)


def _function(cx: Context, node: Nested) -> Steps[Function]:
    span = cx.span(node.body) if isinstance(node, ast.Lambda) else cx.span(node)
    for name in sorted(locals_of(node)):
        is_outer = isinstance(cx.env.find(name), Bound)
        why = "it gets a value only in this function"
        cx.env.set(name, Unbound(span, why, is_outer=is_outer))
    args, around, cx.uses = node.args, cx.uses, []
    params = tuple(_parameter(cx, a) for a in parameter_nodes(args))
    if isinstance(node, ast.Lambda):
        name, result = "", None
        body = yield cx.expression(node.body)
    else:
        name, result = node.name, _result(cx, node)
        cx.defined.add(span)
        body = yield cx.body(cx, node)
    uses, cx.uses = cx.uses, around
    known = {d.name for d in cx.program.signature(cx.definition).type_params}
    own = tuple(p for p in type_names(p.ty for p in params if p.ty) if p.name not in known)
    return Function(params, body, result, own, name, span=span.using(uses))


def _parameter(cx: Context, arg: ast.arg) -> Var:
    span = cx.span(arg)
    found: Annotation | None = None
    if arg.annotation is not None:
        found = cx.annotations.read(arg.annotation, cx.span(arg.annotation))
    ty: Type | None = None if found is None or found.model is not None else found.ty
    var = Var(arg.arg, ty, span=span)
    stream = None
    if found is not None and found.element is not None:
        known = {d.name for d in cx.program.signature(cx.definition).type_params}
        stream = stream_of(cx.program, found.element, known, span)
    params = None if found is None else found.params
    record = None if params is None else annotated_record(cx, params, span)
    cx.env.set(arg.arg, Bound(atom=var, stream=stream, record=record))
    cx.assigned[arg.arg] = None
    if isinstance(ty, SizeType):
        cx.annotations.define(arg.arg, ty.dim)
    return var


def _result(cx: Context, node: ast.FunctionDef) -> Type | None:
    if node.returns is None:
        return None
    found = cx.annotations.read(node.returns, cx.span(node.returns))
    return None if found is None else found.ty


def note_captures(cx: Context, node: Nested, span: Span) -> None:
    """Record the local names that a function which stays in use has captured."""
    for name in sorted(_captured(node)):
        if isinstance(cx.env.find(name), Bound):
            cx.captured.setdefault(name, span)


def note_lambdas(cx: Context, value: ast.expr) -> None:
    """Record what the lambdas have captured that an assigned value is, or holds."""
    pending = [value]
    while pending:
        match pending.pop():
            case ast.Lambda() as node:
                note_captures(cx, node, cx.span(node))
            case ast.IfExp(body=one, orelse=other):
                pending += (one, other)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                pending += parts
            case _:
                pass


def _captured(node: Nested) -> set[str]:
    """Return the names that a function reads when it is called; defaults are read when it is
    made."""
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    own = {node.name} if isinstance(node, ast.FunctionDef) else set[str]()
    return {n for part in body for n in reads(part)} - locals_of(node) - own
