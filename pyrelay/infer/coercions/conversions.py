"""Values of checked programs brought to the types at which they are used.

Numbers are cast, a value becomes an optional; a tuple is taken apart where its fields need that, a
function gets one around it that converts what it takes and gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...diagnostics.catalogue.dtypes import NumberOutOfRange
from ...ir.calls.attributes import bind_attrs
from ...ir.expr import Binding, Call, Constant, Expr, Function, Tuple, TupleGet, Var, type_of
from ...ir.own_sizes import closed, has_own_sizes
from ...ir.traverse import let
from ...ir.types import (
    INT,
    UNIT,
    AdtType,
    DType,
    DTypeKind,
    FnType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    fits,
)
from ...operators.captured import CapturedInteger
from ...operators.host.sizes import as_size
from ...operators.primitive.compare import cast
from ...prelude.library import element_of, inner_of
from .listed import as_list
from .optional import as_optional


class Narrowed(Exception):  # noqa: N818  becomes a diagnostic, or another inference
    """A value would lose something in the dtype at which it is used: nothing casts it then but the
    program itself."""

    def __init__(self, expr: Expr, actual: DType, wanted: DType) -> None:
        super().__init__(f"{actual} is no {wanted}")
        self.span = expr.span
        self.actual = actual
        self.wanted = wanted


class OutOfRange(Exception):  # noqa: N818  becomes a diagnostic
    """A number literal is none of the integers of its dtype."""

    def __init__(self, problem: NumberOutOfRange) -> None:
        super().__init__(problem)
        self.problem = problem


def converted(expr: Expr, wanted: Type | None) -> Expr:
    """Return a typed expression at the type at which it is used, or at any for None."""
    if wanted is None or not _differs(type_of(expr), wanted):
        return expr
    inner = inner_of(wanted)
    actual = type_of(expr)
    if inner is not None and inner_of(actual) is None:
        value = expr if actual == UNIT else converted(expr, inner)
        return as_optional(value, inner, expr.span)
    match actual, wanted:
        case TensorType(), AdtType():
            return closed(expr, wanted)
        case TensorType(), SizeType():
            return Call(as_size, (expr,), ty=wanted, span=expr.span)
        case ((SizeType() | TensorType()), TensorType()):
            if isinstance(expr, Constant) and isinstance(expr.value, int | float):
                return number(expr, wanted)
            return to_dtype(expr, wanted)
        case TupleType(), TupleType():
            return _tuple(expr, actual.fields, wanted.fields)
        case TupleType(), _ if (element := element_of(wanted)) is not None:
            return _list(expr, actual.fields, element)
        case FnType(), FnType():
            return _function(expr, actual, wanted)
        case _:
            return expr


def number(expr: Constant, wanted: TensorType) -> Constant:
    """Return a number literal at a dtype, which its own type stays where it is of another kind."""
    if not isinstance(wanted.dtype, DType) or wanted.dtype.kind is DTypeKind.BOOL:
        return expr
    value: Any = expr.value
    if wanted.dtype.kind is DTypeKind.FLOAT:
        return replace(expr, value=float(value), ty=wanted)
    if not isinstance(value, int):
        return expr
    if not isinstance(value, CapturedInteger) and not fits(value, wanted.dtype):
        raise OutOfRange(NumberOutOfRange(expr.span, value, wanted.dtype.name))
    return replace(expr, value=int(value), ty=wanted)


def to_dtype(expr: Expr, wanted: TensorType) -> Expr:
    """Return the cast of a value to the dtype of a type. Raises Narrowed for one of a lower family:
    no float becomes an integer, and no number a truth value, unless the program says so."""
    actual = expr.ty.dtype if isinstance(expr.ty, TensorType) else INT.dtype
    assert isinstance(actual, DType)
    assert isinstance(wanted.dtype, DType)
    if actual.kind.value > wanted.dtype.kind.value:
        raise Narrowed(expr, actual, wanted.dtype)
    attrs = bind_attrs(cast, {"dtype": wanted.dtype})
    source = expr.ty if isinstance(expr.ty, TensorType) else INT
    return Call(cast, (expr,), attrs, ty=replace(source, dtype=wanted.dtype), span=expr.span)


def _differs(actual: Type, wanted: Type) -> bool:
    """Return whether a value of a type is converted where another is wanted."""
    if inner_of(wanted) is not None:
        return inner_of(actual) is None
    match actual, wanted:
        case TensorType(), AdtType():
            return has_own_sizes(wanted)
        case SizeType(), TensorType((), dtype):
            return dtype != INT.dtype
        case TensorType((), DType()), SizeType(dim):
            return dim.constant is None
        case TensorType((), left), TensorType((), right):
            return left != right
        case TupleType(left), TupleType(right) if len(left) == len(right):
            return any(map(_differs, left, right))
        case TupleType(fields), AdtType():
            return bool(fields) and element_of(wanted) is not None
        case FnType(takes, gives), FnType(given, result) if len(takes) == len(given):
            return any(map(_differs, given, takes)) or _differs(gives, result)
        case _:
            return False


def _tuple(expr: Expr, actual: Sequence[Type], wanted: Sequence[Type]) -> Expr:
    bindings, fields = _fields(expr, actual, wanted)
    ty = TupleType(tuple(map(type_of, fields)))
    return let(bindings, Tuple(fields, ty, span=expr.span))


def _list(expr: Expr, actual: Sequence[Type], wanted: Type) -> Expr:
    bindings, fields = _fields(expr, actual, [wanted] * len(actual))
    return let(bindings, as_list(fields, wanted, expr.span))


def _fields(
    expr: Expr, actual: Sequence[Type], wanted: Sequence[Type]
) -> tuple[list[Binding], tuple[Expr, ...]]:
    """Return the converted fields of a tuple, and what binds it."""
    value, bindings = _named(expr)
    return bindings, tuple(
        converted(TupleGet(value, i, own, span=expr.span), ty)
        for i, (own, ty) in enumerate(zip(actual, wanted, strict=True))
    )


def _function(expr: Expr, actual: FnType, wanted: FnType) -> Expr:
    value, bindings = _named(expr)
    params = tuple(Var("x", ty, span=expr.span) for ty in wanted.params)
    args = tuple(map(converted, params, actual.params))
    call = Call(value, args, ty=actual.result, span=expr.span)
    body = converted(call, wanted.result)
    made = FnType(wanted.params, type_of(body))
    return let(bindings, Function(params, body, made.result, ty=made, span=expr.span))


def _named(expr: Expr) -> tuple[Var, list[Binding]]:
    """Return a value as a variable, and what binds it."""
    if isinstance(expr, Var):
        return expr, []
    var = Var("value", type_of(expr), span=expr.span)
    return var, [Binding(var, expr)]
