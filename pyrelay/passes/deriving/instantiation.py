"""Which types and dims the type parameters of a function stand for in one use of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.dims import Dim, DimVar
from ...ir.types import (
    AdtType,
    FnType,
    RefType,
    SizeType,
    Substitution,
    TensorType,
    TupleType,
    Type,
    TypeParam,
    TypeVar,
    substitution,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...ir.expr import Call, Function


def call_instance(callee: Function, call: Call) -> Substitution:
    """Return the substitution of the type parameters of the callee in a call."""
    params = callee.type_params
    if len(call.type_args) == len(params):
        return substitution(params, call.type_args)
    return match_types(
        params,
        [p.ty for p in callee.params if p.ty is not None],
        [a.ty for a in call.args if a.ty is not None],
    )


def type_arguments(params: Sequence[TypeParam], instance: Substitution) -> tuple[Type | Dim, ...]:
    """Return the arguments that a substitution gives to type parameters, in order."""
    return tuple(
        instance.dims[p.name] if isinstance(p, DimVar) else instance.types[p.name] for p in params
    )


def match_types(
    params: Sequence[TypeParam], wanted: Sequence[Type], given: Sequence[Type]
) -> Substitution:
    """Return the substitution that makes `wanted` into `given`; parameters it leaves open stand for
    themselves."""
    found = Substitution({}, {})
    names = {p.name for p in params}
    pending: list[tuple[Type | Dim, Type | Dim]] = list(zip(wanted, given, strict=True))
    while pending:
        left, right = pending.pop()
        if isinstance(left, Dim):
            if isinstance(right, Dim) and left.name is not None and left.name in names:
                found.dims.setdefault(left.name, right)
        elif isinstance(left, TypeVar):
            if not isinstance(right, Dim) and left.name in names:
                found.types.setdefault(left.name, right)
        else:
            pending += zip(_parts(left), _parts(right), strict=False)
    for param in params:
        if isinstance(param, DimVar):
            found.dims.setdefault(param.name, Dim.of(param.name))
        else:
            found.types.setdefault(param.name, param)
    return found


def _parts(ty: Type | Dim) -> Sequence[Type | Dim]:
    """Return the types and dims directly inside a type."""
    match ty:
        case TensorType(shape):
            return shape
        case SizeType(dim):
            return (dim,)
        case TupleType(fields):
            return fields
        case RefType(value):
            return (value,)
        case AdtType(_, args):
            return args
        case FnType(params, result):
            return (*params, result)
        case _:
            return ()
