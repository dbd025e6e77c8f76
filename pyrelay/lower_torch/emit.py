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
    Host,
    Library,
    Op,
    Pointwise,
    Reduction,
    ShapeBehaviour,
    View,
)
from ..ir.types import DType, SizeType, TensorType, TupleType, Type, int64, is_float
from .apply import compute_dtype
from .constants import torch_dtype
from .terms import Context, Form, Term, interior, leaf, write
from .text import TextScalars, converted
from .trace import NotTraceable, static_leaf, trace

MOST_INLINE: Final = 12
"""A body that traces to more calls than this is called by its name instead, for shorter code."""


def emit_op(call: Call, operands: Sequence[Term | None], context: Context, hint: str) -> Term:
    """Give the value of an operator call as a term; an omitted operand is None."""
    assert isinstance(call.callee, Op)
    op = call.callee
    types = [type_of(a) for a in call.args]
    match op.lowering:
        case Pointwise(body):
            scalars = TextScalars(context, compute_dtype(types))
            result = body(scalars, *operands, *call.attrs.values())
            return _as_declared(result, type_of(call), context)
        case Library(body):
            return _library(op, body, call, operands, context)
        case View(body) | Contraction(body) | Reduction(body=body):
            tensors = [
                t if t is None else _tensors(t, ty, context)
                for t, ty in zip(operands, types, strict=True)
            ]
            return _library(op, body, call, tensors, context)
        case Host():
            return _call_body(op, call, operands, context)
        case other:
            assert_never(other)


def form_of(ty: Type) -> Form:
    """Give what is known at compile time of any run-time value of a type."""
    match ty:
        case SizeType():
            return Form.NUMBER
        case TensorType((), dtype) if not is_float(dtype):
            return Form.EITHER
        case TensorType():
            return Form.TENSOR
        case _:
            return Form.OTHER


def dtype_of(ty: Type) -> DType | None:
    """Give the element type of a tensor or number."""
    if isinstance(ty, SizeType):
        return int64
    return ty.dtype if isinstance(ty, TensorType) and isinstance(ty.dtype, DType) else None


def _library(
    op: Op,
    body: Callable[..., Any],
    call: Call,
    operands: Sequence[Term | None],
    context: Context,
) -> Term:
    device: list[Any] = []
    if op.shape is ShapeBehaviour.FACTORY:
        device = [leaf(lambda: context.code.name("device"), Form.OTHER)]
    attrs = [_attr(a, context) for a in call.attrs.values()]
    types: list[Type] = [*(TupleType(()) for _ in device), *(type_of(a) for a in call.args)]
    try:
        term = trace(body, context.code, [*device, *operands, *attrs], types)
    except NotTraceable:
        return _call_body(op, call, operands, context)
    if interior([term]) > MOST_INLINE or not term.inputs:
        return _call_body(op, call, operands, context)
    return _typed(term, call)


def _call_body(op: Op, call: Call, operands: Sequence[Term | None], context: Context) -> Term:
    """Call the body by its name, arguments in the order that `ir.op` promises it."""
    code = context.code
    first: list[Term] = []
    if not isinstance(op.lowering, Host):
        first.append(leaf(lambda: code.name("torch"), Form.OTHER))
    if op.shape is ShapeBehaviour.FACTORY:
        first.append(leaf(lambda: code.name("device"), Form.OTHER))
    given = [static_leaf(code, None) if t is None else t for t in operands]
    attrs = [static_leaf(code, _attr(a, context)) for a in call.attrs.values()]
    term = Term(
        (*first, *given, *attrs), lambda *nodes: code.call(context.body(op), nodes), Form.OTHER
    )
    return _typed(term, call)


def _typed(term: Term, call: Call) -> Term:
    assert isinstance(call.callee, Op)
    ty = type_of(call)
    form = form_of(ty)
    is_torch = isinstance(call.callee.lowering, View | Contraction | Reduction)
    if form is Form.EITHER and is_torch:
        form = Form.TENSOR
    return Term(term.inputs, term.make, form, dtype_of(ty))


def _attr(value: Any, context: Context) -> Any:
    """Give an attribute as bodies take it; a size that only the run knows is a term."""
    match value:
        case Dim() if value.constant is not None:
            return value.constant
        case Dim():
            return leaf(lambda: context.size(value), Form.NUMBER, int64)
        case DType():
            return torch_dtype(value)
        case tuple():
            return tuple(_attr(v, context) for v in value)  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _tensors(term: Term, ty: Type, context: Context) -> Term:
    """Give a term as a tensor even if it is a number; tuples of numbers likewise."""
    if isinstance(ty, TupleType):
        return _tensor_tuple(term, ty, context)
    dtype = dtype_of(ty)
    if dtype is None or term.is_tensor:
        return term
    return TextScalars(context, dtype).as_tensor(term)


def _tensor_tuple(term: Term, ty: TupleType, context: Context) -> Term:
    if all(form_of(f) is not Form.EITHER and form_of(f) is not Form.NUMBER for f in ty.fields):
        return term
    code = context.code

    def field(index: int, field_type: Type) -> Term:
        def make(value: ast.expr) -> ast.expr:
            return code.item(value, code.literal(index))

        part = Term((term,), make, form_of(field_type), dtype_of(field_type))
        return _tensors(part, field_type, context)

    fields = tuple(field(i, t) for i, t in enumerate(ty.fields))
    return Term(fields, lambda *nodes: code.tuple(nodes), Form.OTHER)


def _as_declared(term: Term, ty: Type, context: Context) -> Term:
    """A body of constants alone gives a number; at run time floats are tensors."""
    dtype = dtype_of(ty)
    if dtype is not None and is_float(dtype) and not term.is_tensor:
        return TextScalars(context, dtype).as_tensor(term)
    return Term(term.inputs, term.make, term.form, dtype, term.literal)


__all__ = ["converted", "dtype_of", "emit_op", "form_of", "write"]
