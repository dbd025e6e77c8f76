"""Batch dims in types: the type of many values side by side, of which each has a given type.

A tensor has a dim more, and data have it in each tensor. A data type whose type parameters do not
show that has a copy for batches, with the size of the batch as its last parameter: `Point.batch` of
`N` has tensors of shape `(N,)` where `Point` has numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...diagnostics.wording import counted
from ..dims import Dim, DimVar
from ..names import Names
from ..transforms import Axes
from ..types import (
    AdtType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    batch_name,
    element_name,
    int64,
    show,
    subtypes,
)
from .own_tensors import own_tensors

if TYPE_CHECKING:
    from ..module import AdtDef


class NoBatch(Exception):  # noqa: N818  becomes a diagnostic where the place is known
    """A type that has no batch dim where axes ask for one; `help` is what to write instead."""

    def __init__(self, message: str, help: str) -> None:  # noqa: A002  the diagnostic's own word
        super().__init__(message)
        self.help = help


def with_batch(ty: Type, axes: Axes, size: Dim, adts: Mapping[str, AdtDef]) -> Type:
    """Return the type of `size` values side by side, of which data are among `adts`. Raises
    NoBatch."""
    if axes is None:
        return ty
    match ty:
        case TensorType(shape):
            place = _place(axes, len(shape) + 1, ty)
            return replace(ty, shape=(*shape[:place], size, *shape[place:]))
        case SizeType():
            _place(axes, 1, ty)
            return TensorType((size,), int64)
        case TupleType(fields):
            each = zip(fields, axes_of(ty, axes), strict=True)
            return TupleType(tuple(with_batch(f, a, size, adts) for f, a in each))
        case AdtType(name, args):
            _check_data(ty, _one(axes, ty))
            inside = (a if isinstance(a, Dim) else with_batch(a, 0, size, adts) for a in args)
            return _data_batch(name, tuple(inside), size, adts)
        case RefType():
            raise NoBatch("a cell cannot be batched", "pass what it holds")
        case _:
            return ty


def without_batch(ty: Type, axes: Axes) -> Type:
    """Return the type of one of the values that a type has side by side. Raises NoBatch."""
    if axes is None:
        return ty
    match ty:
        case TensorType(shape):
            place = _place(axes, len(shape), ty)
            return replace(ty, shape=(*shape[:place], *shape[place + 1 :]))
        case TupleType(fields):
            each = zip(fields, axes_of(ty, axes), strict=True)
            return TupleType(tuple(without_batch(f, a) for f, a in each))
        case AdtType(name, args):
            _one(axes, ty)
            element = element_name(name)
            args = args if element is None else args[:-1]
            inside = (a if isinstance(a, Dim) else without_batch(a, 0) for a in args)
            return AdtType(element or name, tuple(inside))
        case _:
            return ty


def inside_batch(ty: Type, size: Dim, adts: Mapping[str, AdtDef]) -> Type:
    """Return the type of a part of data in a batch, in which sizes, cells and functions stay what
    they are."""
    match ty:
        case TensorType(shape, dtype):
            return TensorType((size, *shape), dtype)
        case TupleType(fields):
            return TupleType(tuple(inside_batch(f, size, adts) for f in fields))
        case AdtType(name, args):
            inside = (a if isinstance(a, Dim) else inside_batch(a, size, adts) for a in args)
            return _data_batch(name, tuple(inside), size, adts)
        case _:
            return ty


def _data_batch(
    name: str, args: tuple[Type | Dim, ...], size: Dim, adts: Mapping[str, AdtDef]
) -> AdtType:
    """Return the type of a batch of data, whose type arguments are those of the batch."""
    if own_tensors(adts, name):
        return AdtType(batch_name(name), (*args, size))
    return AdtType(name, args)


def batch_definitions(ty: Type, adts: Mapping[str, AdtDef]) -> dict[str, AdtDef]:
    """Return the definitions of the data types of batches that a type mentions, and that are not
    among `adts` already, with those inside them."""
    found: dict[str, AdtDef] = {}
    pending = [ty]
    while pending:
        for part in subtypes(pending.pop()):
            if not isinstance(part, AdtType) or part.name in adts or part.name in found:
                continue
            if element_name(part.name) is not None:
                found[part.name] = batch_definition(part.name, {**adts, **found})
                pending += found[part.name].fields
    return found


def batch_definition(name: str, adts: Mapping[str, AdtDef]) -> AdtDef:
    """Return the definition of the data type of a batch, by its name."""
    element = element_name(name)
    assert element is not None
    one = adts[element] if element in adts else batch_definition(element, adts)
    size = DimVar(Names(p.name for p in one.type_params).fresh("batch"))
    made = tuple(
        replace(c, fields=tuple(inside_batch(f, Dim.atom(size), adts) for f in c.fields))
        for c in one.constructors
    )
    return replace(one, name=name, type_params=(*one.type_params, size), constructors=made)


def is_batched(ty: Type, axes: Axes) -> bool:
    """Return whether a type has a tensor where axes have a batch dim."""
    if axes is None:
        return False
    match ty:
        case TensorType() | SizeType() | AdtType():
            return True
        case TupleType(fields):
            each = axes if isinstance(axes, tuple) else (axes,) * len(fields)
            return any(is_batched(f, a) for f, a in zip(fields, each, strict=False))
        case _:
            return False


def axes_of(ty: TupleType, axes: Axes) -> tuple[Axes, ...]:
    """Return the axes of each field of a tuple. Raises NoBatch."""
    count = len(ty.fields)
    if not isinstance(axes, tuple):
        return (axes,) * count
    if len(axes) == count:
        return axes
    raise NoBatch(
        f"the axes {axes} do not fit {show(ty)}",
        f"write one axis for all of it, or a tuple of {count}",
    )


def _check_data(ty: AdtType, axis: int) -> None:
    """Check that data can have a batch dim. Raises NoBatch."""
    if axis != 0:
        raise NoBatch(
            f"{show(ty)} has its batch in dim 0 of each tensor, not {axis}", "write axis 0 for data"
        )


def _place(axes: Axes, rank: int, ty: Type) -> int:
    """Return the dim that an axis names, counted from 0, among `rank` with it."""
    axis = _one(axes, ty)
    if not -rank <= axis < rank:
        held = f"{show(ty)} as one of a batch" if rank else show(ty)
        raise NoBatch(
            f"axis {axis} is out of range for {held}",
            f"with the batch it has {counted(rank, 'dimension')}: write an axis from {-rank} to "
            f"{rank - 1}"
            if rank
            else "write None for what is the same in every call",
        )
    return axis % rank


def _one(axes: Axes, ty: Type) -> int:
    if isinstance(axes, int):
        return axes
    raise NoBatch(
        f"the axes {axes} do not fit {show(ty)}", "write one axis for all of its tensors, or None"
    )
