"""One operator call on values that are there: what the reference evaluator does for each operator.

The lowering declared by the operator is called as it stands, with attributes and operands in the
form that `ir.op` promises it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

import torch

from ..ir.declaration.scalars import compute_dtype
from ..ir.dims import Dim
from ..ir.expr import Call, Constant, Expr, Tuple, TupleGet, Var, type_of
from ..ir.nested import leaves
from ..ir.op import (
    Contraction,
    Host,
    Library,
    MadeOf,
    Op,
    Param,
    Pointwise,
    Reduction,
    ShapeBehaviour,
    Solver,
    View,
)
from ..ir.types import (
    DType,
    DTypeKind,
    SizeType,
    TensorType,
    TupleType,
    Type,
    int64,
    is_float,
    known_dtype,
)
from ..operators.builder import Builder, Value
from .constants import is_host_number, tensor_constant, torch_dtype
from .integers import fitted, number_of
from .scalars import TorchScalars, tensor_of

Apply: TypeAlias = Callable[[Op, Call, Sequence[Any], Callable[[Dim], int], torch.device], Any]


def apply_op(
    op: Op, call: Call, operands: Sequence[Any], size: Callable[[Dim], int], device: torch.device
) -> Any:
    """Return the value of an operator call; `size` evaluates the dims in its attributes."""
    values = operands_of(op, call, operands, device)
    match op.lowering:
        case Pointwise(body):
            types = [type_of(a) for a in call.args]
            scalars = TorchScalars(torch_dtype(compute_dtype(types)), device)
            integer = integer_dtype(type_of(call))
            if integer is not None:
                numbers = map(number_of, values)
                return fitted(body(scalars, *numbers, *call.attrs.values()), torch_dtype(integer))
            result = body(scalars, *values, *call.attrs.values())
            return _as_declared(result, type_of(call), device)
        case Library(body):
            attrs = [run_time_attr(a, size) for a in call.attrs.values()]
            where = (device,) if op.shape is ShapeBehaviour.FACTORY else ()
            return body(torch, *where, *values, *attrs)
        case View(body) | Contraction(body) | Reduction(body=body):
            attrs = [run_time_attr(a, size) for a in call.attrs.values()]
            return body(torch, *values, *attrs)
        case Host(body):
            attrs = [run_time_attr(a, size) for a in call.attrs.values()]
            result = body(*values, *attrs)
            return () if type_of(call) == TupleType(()) else result
        case MadeOf(body):
            return value_of_body(body, call, operands, size, device)
        case other:
            assert_never(other)


def value_of_body(
    body: Callable[[tuple[Value, ...], Mapping[str, Any]], Value | None],
    call: Call,
    operands: Sequence[Any],
    size: Callable[[Dim], int],
    device: torch.device,
    *,
    solver: Solver | None = None,
    apply: Apply = apply_op,
) -> Any:
    """Return the value of a call from a body in other operators, each of which `apply` evaluates;
    NotImplemented where the body leaves the call alone."""
    assert isinstance(call.callee, Op)
    builder = Builder(call.span, solver=solver)
    values: dict[Expr, Any] = {}
    args: list[Value] = []
    for index, (atom, value) in enumerate(zip(call.args, operands, strict=True)):
        if is_omitted(call.callee, index, () if value is None else value):
            args.append(builder.unit())
            continue
        var = Var(builder.names.fresh("x"), type_of(atom), span=call.span)
        values[var] = value
        args.append(builder.value(var))
    result = body(tuple(args), call.attrs)
    if result is None:
        return NotImplemented

    def value_of(expr: Expr) -> Any:
        match expr:
            case Call(callee=Op() as op):
                return apply(op, expr, [value_of(a) for a in expr.args], size, device)
            case Tuple(fields):
                return tuple(map(value_of, fields))
            case TupleGet(value, index):
                return value_of(value)[index]
            case Constant():
                return expr.value if is_host_number(expr) else tensor_constant(expr, device)
            case _:
                return values[expr]

    for binding in builder.bindings:
        values[binding.var] = value_of(binding.value)
    return value_of(result.atom)


def integer_dtype(result: Type) -> DType | None:
    """Return the dtype of a result that is one integer, None for any other."""
    match result:
        case SizeType():
            return int64
        case TensorType((), DType(kind=DTypeKind.INT) as dtype):
            return dtype
        case _:
            return None


def operands_of(op: Op, call: Call, operands: Sequence[Any], device: torch.device) -> list[Any]:
    """Return operands as the operator's body takes them: None for one that is omitted, and tensors
    for numbers where torch needs them."""
    values = [None if is_omitted(op, i, v) else v for i, v in enumerate(operands)]
    types = [type_of(a) for a in call.args]
    match op.lowering:
        case View() | Contraction() | Reduction():
            return _tensors(values, types, device)
        case Library() if needs_tensors(type_of(call)):
            have = any(isinstance(v, torch.Tensor) for v in leaves(tuple(values)))
            return values if have else _tensors(values, types, device)
        case _:
            return values


def needs_tensors(result: Type) -> bool:
    """Return whether a library operator with this result works on a tensor, if only of a number:
    then what it makes goes to the device of the program."""
    return isinstance(result, TensorType) and (bool(result.shape) or is_float(result.dtype))


def _tensors(values: Sequence[Any], types: Sequence[Type], device: torch.device) -> list[Any]:
    return [
        v if v is None else as_tensors(v, t, device) for v, t in zip(values, types, strict=True)
    ]


def is_omitted(op: Op, index: int, value: object) -> bool:
    """Return whether an operand that may be omitted is: it is then the empty tuple."""
    params: tuple[Param, ...] = op.operands
    optional = index < len(params) and params[index].default is None
    return optional and isinstance(value, tuple) and not value


def run_time_attr(value: Any, size: Callable[[Dim], int]) -> Any:
    """Return an attribute as bodies take it: dims are ints, dtypes are torch's."""
    match value:
        case Dim():
            return size(value)
        case DType():
            return torch_dtype(value)
        case tuple():
            return tuple(run_time_attr(v, size) for v in value)
        case _:
            return value


def as_tensors(value: Any, ty: Type, device: torch.device) -> Any:
    """Return a value of tensor type as a tensor even if it is a number, tuples likewise."""
    match ty:
        case SizeType():
            return tensor_of(value, torch.int64, device)
        case TensorType((), DType() as dtype):
            return tensor_of(value, torch_dtype(dtype), device)
        case TupleType(fields):
            return tuple(as_tensors(v, t, device) for v, t in zip(value, fields, strict=True))
        case _:
            return value


def _as_declared(value: Any, ty: Type, device: torch.device) -> Any:
    """A body of constants alone gives a Python float; at run time floats are tensors."""
    if isinstance(ty, TensorType) and is_float(ty.dtype) and not isinstance(value, torch.Tensor):
        return tensor_of(value, torch_dtype(known_dtype(ty)), device)
    return value
