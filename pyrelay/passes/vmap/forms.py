"""The types of batched values: of one structure for all elements, or mixed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...ir.dims import Dim, DimVar
from ...ir.module import AdtDef, ConstructorDef
from ...ir.types import (
    AdtType,
    FnType,
    RefType,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    dim_names,
    int64,
)
from ..deriving.leaves import GrowingType, skeleton
from .masks import MIXED, Mask, is_any

if TYPE_CHECKING:
    from ..deriving.store import Store
    from .data import Batches


@final
class Forms:
    """The masks and types of batched values. Types of mixed data are defined as they are needed."""

    def __init__(self, store: Store, uniform: Batches) -> None:
        self._store: Final = store
        self._uniform: Final = uniform
        self._parts: Final[dict[AdtType, tuple[str, ...]]] = {}
        self._records: Final[dict[AdtType, bool]] = {}

    def full(self, ty: Type) -> Mask:
        """Return the mask of a value all of whose tensors are batched, of one structure."""
        return self._uniform.full(ty)

    def none(self, ty: Type) -> Mask:
        """Return the mask of a value that is the same for all elements."""
        return self._uniform.none(ty)

    def differing(self, ty: Type) -> Mask:
        """Return the mask of a value of which all may differ between elements."""
        match ty:
            case TupleType(fields):
                return tuple(map(self.differing, fields))
            case AdtType() if not self.is_record(ty):
                return MIXED
            case _:
                return self._uniform.full(ty)

    def type(self, ty: Type, mask: Mask, count: Dim) -> Type:
        """Return the type of a value of which some is batched."""
        match ty:
            case TupleType(fields):
                assert isinstance(mask, tuple)
                parts = zip(fields, mask, strict=True)
                return TupleType(tuple(self.type(t, m, count) for t, m in parts))
            case RefType(value) if is_any(mask):
                return RefType(self.type(value, mask, count))
            case AdtType() if mask is MIXED:
                return TupleType(self.part_types(*skeleton(ty)))
            case _:
                return self._uniform.type(ty, is_any(mask), count)

    def why_never_mixed(self, ty: Type) -> str | None:
        """Return the reason why elements cannot differ in a value of a type; None where they
        can."""
        pending: list[Type] = [ty]
        seen: set[AdtType] = set()
        while pending:
            match pending.pop():
                case TupleType(fields):
                    pending += fields
                case StrType():
                    return "strings are"
                case RefType():
                    return "cells are"
                case FnType():
                    return "functions are"
                case AdtType() as data if data not in seen:
                    seen.add(data)
                    if len(seen) > _MAX_TYPES:
                        raise GrowingType(data.name)
                    if self._has_own_sizes(data):
                        return "sizes of tensors are"
                    for constructor in self._store.adts[data.name].constructors:
                        pending += self._uniform.fields(skeleton(data)[0], constructor.name)
                case _:
                    pass
        return None

    def _has_own_sizes(self, ty: AdtType) -> bool:
        """Return whether constructors have sizes that the type does not show."""
        definition = self._store.adts[ty.name]
        shown = {p.name for p in definition.type_params}
        fields = definition.fields
        return any(dim_names(f) - shown for f in fields)

    def is_record(self, ty: AdtType) -> bool:
        """Return whether data have one constructor and hold tensors and such data alone."""
        general = skeleton(ty)[0]
        if general not in self._records:
            self._records[general] = False  # where it holds itself
            constructors = self._store.adts[ty.name].constructors
            self._records[general] = (
                len(constructors) == 1
                and not self._has_own_sizes(general)
                and all(map(self._is_plain, self._uniform.fields(general, constructors[0].name)))
            )
        return self._records[general]

    def _is_plain(self, ty: Type) -> bool:
        match ty:
            case TupleType(fields):
                return all(map(self._is_plain, fields))
            case AdtType():
                return self.is_record(ty)
            case _:
                return isinstance(ty, TensorType | SizeType)

    def part_types(self, general: AdtType, dims: tuple[Dim, ...]) -> tuple[AdtType, ...]:
        """Return the types of the parts of mixed data, one for each constructor."""
        if general not in self._parts:
            self._define_parts(general)
        return tuple(AdtType(name, dims) for name in self._parts[general])

    def _define_parts(self, general: AdtType) -> None:
        definition, data_name = self._store.adts[general.name], self._store.data_name
        if len(self._parts) > _MAX_TYPES:
            raise GrowingType(general.name)
        names = [data_name(f"{general.name}_{c.name}") for c in definition.constructors]
        self._parts[general] = tuple(names)  # now, since data hold data of their type
        params = tuple(DimVar(n) for d in skeleton(general)[1] for n in sorted(d.names()))
        for name, constructor in zip(names, definition.constructors, strict=True):
            types = self.part_fields(general, constructor.name, Dim.of("elements"))
            some = ConstructorDef(data_name(f"{name}_some"), types)
            none = ConstructorDef(data_name(f"{name}_none"), ())
            self._store.adts[name] = AdtDef(name, params, (some, none), definition.span)

    def part_fields(self, ty: AdtType, constructor: str, count: Dim) -> tuple[Type, ...]:
        """Return the types of the positions and fields of `count` elements of a constructor."""
        fields = self._uniform.fields(ty, constructor)
        inside = (self.type(f, self.differing(f), count) for f in fields)
        return (TensorType((count,), int64), *inside)

    def fields(self, ty: AdtType, constructor: str) -> tuple[Type, ...]:
        """Return the types of the fields of a constructor of an applied data type."""
        return self._uniform.fields(ty, constructor)

    def constructor(self, adt: str, name: str) -> tuple[str, str]:
        """Return the data type and constructor of batched values of one structure."""
        return self._uniform.constructor(adt, name)

    def is_only_constructor(self, adt: str) -> bool:
        """Return whether a data type has one constructor."""
        return len(self._store.adts[adt].constructors) == 1

    def some_of(self, part: AdtType) -> tuple[str, str]:
        """Return the data type and constructor of a part that has elements."""
        return part.name, self._store.adts[part.name].constructors[0].name


_MAX_TYPES: Final = 1000
"""How many data types inside one are made before it is taken to grow for ever."""
