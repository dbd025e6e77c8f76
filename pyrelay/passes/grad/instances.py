"""One function differentiated for one choice of parameters and results, and calls of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from ...ir.dims import Dim, DimVar
from ...ir.types import (
    AdtType,
    RefType,
    SizeType,
    Substitution,
    TensorType,
    TupleType,
    Type,
    TypeVar,
    substitution,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...ir.expr import Call, Function
    from ...ir.types import TypeParam


@final
@dataclass(slots=True, eq=False)
class Instance:
    """The forward and backward function made of one function.

    Masks count the leaves of all parameters, or of the result, from bit 0. `backward` takes the
    residual (where there is one), the values of the parameters in `values`, the cotangents of the
    leaves in `useful`, then the cotangents so far of the `threaded` leaves of `active`, and, if it
    `works_on_cells`, the run that shadows belong to; it gives the cotangents of `active`, added to
    those so far where the leaf is threaded.
    """

    source: str
    varied: int
    useful: int
    forward: str
    backward: str
    residual: Type | None = None
    """Over the type parameters of the function; None where nothing is saved: then the forward
    function is the original."""
    values: tuple[int, ...] = ()
    candidates: tuple[int, ...] = ()
    """While `open`: the parameters that may turn out to be in `values`."""
    active: int = 0
    threaded: int = 0
    trace: AdtType | None = None
    """For a loop: the type of the list of iterations, which the forward function takes last."""
    start: str = ""
    """The constructor of the empty trace."""
    extra: tuple[DimVar, ...] = ()
    """Sizes that only the result knows: the running program tells the backward function too, by the
    cotangent that it is given."""
    works_on_cells: bool = False
    """Whether the backward function must run for what it does to shadows."""
    open: bool = field(default=False)
    """True while the group of recursive functions that it belongs to is being derived."""


def bits(mask: int) -> list[int]:
    """Return the positions of the bits that are set, in order."""
    found: list[int] = []
    index = 0
    while mask:
        if mask & 1:
            found.append(index)
        mask >>= 1
        index += 1
    return found


def ones(width: int) -> int:
    """Return the mask of all leaves."""
    return (1 << width) - 1


def call_instance(callee: Function, call: Call) -> Substitution:
    """Return what the type parameters of the callee stand for in a call."""
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
        case _:
            return ()
