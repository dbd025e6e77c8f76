"""One operator call as generated torch code.

A pointwise body is read as torch expressions; the body of another operator is traced to the torch
calls it makes, or, where that is not possible, called by its name with literal attributes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final, assert_never

from ..ir.dims import Dim
from ..ir.expr import Call, type_of
from ..ir.op import (
    Contraction,
    Effect,
    Host,
    Library,
    MadeOf,
    Op,
    Pointwise,
    Reduction,
    ShapeBehaviour,
    View,
)
from ..ir.types import DType, TupleType, Type, dtype_of, int64, is_float
from .apply import compute_dtype, integer_dtype, needs_tensors
from .constants import torch_dtype
from .terms import EmitContext, Form, Term, form_of, interior, leaf, part_of, tuple_term
from .text import TextScalars
from .trace import NotTraceable, term_of, trace

MOST_INLINE: Final = 12
"""A body that traces to more calls than this is called by its name instead, for shorter code."""


def emit_op(call: Call, operands: Sequence[Term | None], context: EmitContext) -> Term:
    """Return the value of an operator call as a term; an omitted operand is None."""
    assert isinstance(call.callee, Op)
    op = call.callee
    types = [type_of(a) for a in call.args]
    match op.lowering:
        case Pointwise(body):
            integer = None if context.is_in_range(call) else integer_dtype(type_of(call))
            scalars = TextScalars(context, compute_dtype(types), integer)
            result = body(scalars, *operands, *call.attrs.values())
            return _as_declared(result, type_of(call), context)
        case Library(body):
            if needs_tensors(type_of(call)) and not any(map(_surely_has_tensor, types)):
                operands = _all_tensors(operands, types, context)
            return _traced(op, body, call, operands, context)
        case View(body) | Contraction(body) | Reduction(body=body):
            return _traced(op, body, call, _all_tensors(operands, types, context), context)
        case Host(body):
            return _traced(op, body, call, operands, context)
        case MadeOf():
            raise AssertionError("composites are written out before code is generated")
        case other:
            assert_never(other)


def _traced(
    op: Op,
    body: Callable[..., Any],
    call: Call,
    operands: Sequence[Term | None],
    context: EmitContext,
) -> Term:
    device: list[Any] = []
    if op.shape is ShapeBehaviour.FACTORY:
        device = [leaf(lambda: context.code.name("device"), Form.OTHER)]
    attrs = [_attr(a, context) for a in call.attrs.values()]
    types: list[Type | None] = [*(None for _ in device), *(type_of(a) for a in call.args)]
    if op.effect & (Effect.STATE | Effect.RANDOM | Effect.IO):
        # To trace is to run the body, which would have its effect now.
        return call_body(call, operands, context, context.body(op))
    is_host = isinstance(op.lowering, Host)
    try:
        term = trace(body, context, [*device, *operands, *attrs], types, takes_torch=not is_host)
    except NotTraceable:
        return call_body(call, operands, context, context.body(op))
    if interior([term]) > MOST_INLINE:
        return call_body(call, operands, context, context.body(op))
    return _typed(term, call)


def call_body(
    call: Call, operands: Sequence[Term | None], context: EmitContext, body: ast.expr
) -> Term:
    """Call an operator's body by its name, arguments in the order that `ir.op` promises it."""
    code, op = context.code, call.callee
    assert isinstance(op, Op)
    first: list[Term] = []
    if not isinstance(op.lowering, Host):
        first.append(leaf(lambda: code.name("torch"), Form.OTHER))
    if op.shape is ShapeBehaviour.FACTORY:
        first.append(leaf(lambda: code.name("device"), Form.OTHER))
    given = [term_of(code, t) for t in operands]
    attrs = [term_of(code, _attr(a, context)) for a in call.attrs.values()]
    term = Term((*first, *given, *attrs), lambda *nodes: code.call(body, nodes), Form.OTHER)
    return _typed(term, call)


def _typed(term: Term, call: Call) -> Term:
    assert isinstance(call.callee, Op)
    ty = type_of(call)
    form = form_of(ty)
    is_torch = isinstance(call.callee.lowering, View | Contraction | Reduction)
    if form is Form.EITHER and is_torch:
        form = Form.TENSOR
    return Term(term.inputs, term.make, form, dtype_of(ty))


def _attr(value: Any, context: EmitContext) -> Any:
    """Return an attribute as bodies take it; a size that only the run knows is a term."""
    match value:
        case Dim() if value.constant is not None:
            return value.constant
        case Dim():
            return leaf(lambda: context.size(value), Form.NUMBER, int64)
        case DType():
            return torch_dtype(value)
        case tuple():
            return tuple(_attr(v, context) for v in value)
        case _:
            return value


def _surely_has_tensor(ty: Type) -> bool:
    fields = ty.fields if isinstance(ty, TupleType) else (ty,)
    return any(form_of(f) is Form.TENSOR for f in fields)


def _all_tensors(
    operands: Sequence[Term | None], types: Sequence[Type], context: EmitContext
) -> list[Term | None]:
    return [
        t if t is None else _tensors(t, ty, context) for t, ty in zip(operands, types, strict=True)
    ]


def _tensors(term: Term, ty: Type, context: EmitContext) -> Term:
    """Return a term as a tensor even if it is a number; tuples of numbers likewise."""
    if isinstance(ty, TupleType):
        return _tensor_tuple(term, ty, context)
    dtype = dtype_of(ty)
    if dtype is None or term.is_tensor:
        return term
    return TextScalars(context, dtype).tensor(term)


def _tensor_tuple(term: Term, ty: TupleType, context: EmitContext) -> Term:
    if all(form_of(f) is not Form.EITHER and form_of(f) is not Form.NUMBER for f in ty.fields):
        return term
    code = context.code
    parts = term.parts or tuple(part_of(code, term, i, t) for i, t in enumerate(ty.fields))
    fields = tuple(_tensors(p, t, context) for p, t in zip(parts, ty.fields, strict=True))
    return tuple_term(code, fields)


def _as_declared(term: Term, ty: Type, context: EmitContext) -> Term:
    """A body of constants alone gives a number; at run time floats are tensors."""
    dtype = dtype_of(ty)
    if dtype is not None and is_float(dtype) and not term.is_tensor:
        return TextScalars(context, dtype).tensor(term)
    return Term(term.inputs, term.make, term.form, dtype, term.literal)
