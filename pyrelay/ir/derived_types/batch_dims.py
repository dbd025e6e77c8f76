"""Batch dims in types: the type of many values side by side, of which each has a given type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...diagnostics.wording import counted
from ..dims import Dim
from ..transforms import Axes
from ..types import AdtType, RefType, SizeType, TensorType, TupleType, Type, int64, show
from .own_tensors import is_record, own_tensors, with_type_parameters

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
            _check_data(ty, _one(axes, ty), adts)
            inside = (a if isinstance(a, Dim) else with_batch(a, 0, size, adts) for a in args)
            return AdtType(name, tuple(inside))
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
            inside = (a if isinstance(a, Dim) else without_batch(a, 0) for a in args)
            return AdtType(name, tuple(inside))
        case _:
            return ty


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


def _check_data(ty: AdtType, axis: int, adts: Mapping[str, AdtDef]) -> None:
    """Check that data can have a batch dim. Raises NoBatch."""
    if own_tensors(adts, ty.name):
        way = with_type_parameters(adts, ty.name)
        if is_record(adts[ty.name]):
            made = adts[ty.name].constructors[0]
            names = ", ".join(made.field_names)
            call = f"f({made.name}({names}))"
            way += f"; or batch its fields, `relay.vmap(lambda {names}: {call})`"
        raise NoBatch(f"the type of {show(ty)} cannot show the dim of a batch", way)
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
