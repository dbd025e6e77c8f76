"""The differentiable leaves of a value, and the types of cotangents.

A float tensor is a leaf whose cotangent has its own type. A tuple has the leaves of its fields. A
value of an algebraic data type that holds floats is one leaf: its cotangent is a generated data
type with a `zero` and one constructor for each constructor that holds floats, whose fields are the
cotangents of the leaves of the fields. A cotangent of such a cotangent has its own type again, so
differentiating any number of times adds no types. Nothing else has leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final, final

from ...dataclass import dataclass
from ...ir.dims import Dim, DimVar
from ...ir.module import AdtDef, ConstructorDef
from ...ir.types import (
    UNIT,
    AdtType,
    RefType,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    is_float,
    map_type,
)

if TYPE_CHECKING:
    from .store import Store

MAX_LEVELS: Final = 10
"""How often a data type may be met inside itself with ever new arguments before it is taken to
grow for ever."""


class GrowingType(Exception):  # noqa: N818  becomes a diagnostic where the place is known
    """A recursive data type applies itself to ever larger types, so it has no cotangent type."""


@final
@dataclass(frozen=True, slots=True)
class DataCotangent:
    """The cotangent type of one data type: its definition, and what became of each constructor."""

    definition: AdtDef
    zero: str
    constructors: Mapping[str, str]


@final
class Leaves:
    """Finds leaves of types, and defines cotangent types as they are needed."""

    def __init__(self, store: Store) -> None:
        self._store: Final = store
        self._known: Final[dict[int, tuple[Type, tuple[Type, ...]]]] = {}
        self._data: Final[dict[AdtType, DataCotangent | None]] = {}
        self._own: Final[dict[str, DataCotangent]] = {}
        self._offsets: Final[dict[int, tuple[TupleType, tuple[int, ...]]]] = {}

    def of(self, ty: Type) -> tuple[Type, ...]:
        """Return the cotangent types of the leaves of a type, left to right."""
        # The same type object is asked for again and again, and hashing a wide tuple takes long.
        known = self._known.get(id(ty))
        if known is None or known[0] is not ty:
            known = self._known[id(ty)] = (ty, self._find(ty))
        return known[1]

    def width(self, ty: Type) -> int:
        """Return the number of leaves."""
        return len(self.of(ty))

    def offset(self, ty: Type, index: int) -> int:
        """Return the number of leaves in the fields of a tuple before field `index`."""
        assert isinstance(ty, TupleType)
        known = self._offsets.get(id(ty))
        if known is None or known[0] is not ty:
            sums = accumulate((self.width(f) for f in ty.fields), initial=0)
            known = self._offsets[id(ty)] = (ty, tuple(sums))
        return known[1][index]

    def data(self, cotangent: AdtType) -> DataCotangent:
        """Return the facts about a cotangent type."""
        return self._own[cotangent.name]

    def constructor(self, cotangent: AdtType, value: AdtType, name: str) -> str | None:
        """Return the constructor of the cotangent that stands for one of the value, if any."""
        data = self._own[cotangent.name]
        if value.name == cotangent.name:
            return None if name == data.zero else name
        return data.constructors.get(name)

    def fields(self, ty: AdtType, constructor: str) -> tuple[Type, ...]:
        """Return the types of the fields of a constructor of an applied data type."""
        return self._store.adts[ty.name].field_types(ty, constructor)

    def _find(self, ty: Type) -> tuple[Type, ...]:
        match ty:
            case TensorType(_, dtype):
                return (ty,) if is_float(dtype) else ()
            case TupleType(fields):
                return tuple(leaf for field in fields for leaf in self.of(field))
            case AdtType():
                return self._find_data(ty)
            case _:
                return ()

    def _find_data(self, ty: AdtType) -> tuple[Type, ...]:
        if ty.name in self._own:
            return (ty,)
        general, dims = skeleton(_floats(ty))
        if general not in self._data:
            self._define(general)
        found = self._data[general]
        return () if found is None else (AdtType(found.definition.name, dims),)

    def _define(self, root: AdtType) -> None:
        """Define the cotangents of a data type and of all others inside it."""
        inside = self._reachable(root)
        carrying = self._carrying(inside)
        shells: dict[AdtType, DataCotangent] = {}
        for general in inside:
            if general not in carrying:
                self._data[general] = None
                continue
            name = self._store.data_name(f"{general.name}_ct")
            params = tuple(DimVar(f"dim_{i}") for i in range(len(skeleton(general)[1])))
            span = self._store.adts[general.name].span
            zero = self._store.data_name(f"{name}_zero")
            # The name is enough for the fields of the others; constructors follow below.
            shells[general] = DataCotangent(AdtDef(name, params, (), span), zero, {})
            self._data[general] = shells[general]
        for general, shell in shells.items():
            self._fill(general, shell)

    def _fill(self, general: AdtType, shell: DataCotangent) -> None:
        constructors = [ConstructorDef(shell.zero, ())]
        names: dict[str, str] = {}
        for constructor in self._store.adts[general.name].constructors:
            fields = self.fields(general, constructor.name)
            leaves = tuple(leaf for f in fields for leaf in self._find(f))
            if leaves:
                name = names[constructor.name] = self._store.data_name(f"{constructor.name}_ct")
                constructors.append(ConstructorDef(name, leaves))
        definition = replace(shell.definition, constructors=tuple(constructors))
        self._store.adts[definition.name] = definition
        found = DataCotangent(definition, shell.zero, names)
        self._data[general] = self._own[definition.name] = found

    def _reachable(self, root: AdtType) -> dict[AdtType, list[Type]]:
        """Return the applied data types inside one that are new, with the types of their fields."""
        found: dict[AdtType, list[Type]] = {}
        around: dict[AdtType, AdtType | None] = {root: None}
        pending = [root]
        while pending:
            general = pending.pop()
            if general in found:
                continue
            if _level(general, around) > MAX_LEVELS:
                raise GrowingType(root.name)
            definition = self._store.adts[general.name]
            found[general] = [
                f for c in definition.constructors for f in self.fields(general, c.name)
            ]
            inside = [s for f in found[general] for s in self._new_data(f)]
            for new in inside:
                around.setdefault(new, general)
            pending += reversed(inside)
        return found

    def _new_data(self, ty: Type) -> Iterator[AdtType]:
        """Return the applied data types in a field, where a cotangent can reach them."""
        for part in _fields_deep(ty):
            if isinstance(part, AdtType) and part.name not in self._own:
                general = skeleton(_floats(part))[0]
                if general not in self._data:
                    yield general

    def _carrying(self, inside: Mapping[AdtType, list[Type]]) -> set[AdtType]:
        """Return those of the data types that hold floats, directly or through each other."""
        users: dict[AdtType, list[AdtType]] = {general: [] for general in inside}
        carrying: set[AdtType] = set()
        for general, fields in inside.items():
            for field in fields:
                for used in self._new_data(field):
                    users[used].append(general)
                if self._carries_already(field):
                    carrying.add(general)
        pending = list(carrying)
        while pending:
            for user in users[pending.pop()]:
                if user not in carrying:
                    carrying.add(user)
                    pending.append(user)
        return carrying

    def _carries_already(self, ty: Type) -> bool:
        for part in _fields_deep(ty):
            match part:
                case TensorType(_, dtype) if is_float(dtype):
                    return True
                case AdtType(name) if name in self._own:
                    return True
                case AdtType() if self._data.get(skeleton(_floats(part))[0]) is not None:
                    return True
                case _:
                    pass
        return False


def _level(general: AdtType, around: Mapping[AdtType, AdtType | None]) -> int:
    """Return how many of the data types around one are the same with other arguments."""
    count, outer = 0, around[general]
    while outer is not None:
        count += outer.name == general.name
        outer = around[outer]
    return count


def _fields_deep(ty: Type) -> Iterator[Type]:
    """Return the parts of a type that are reached through tuples alone."""
    pending = [ty]
    while pending:
        part = pending.pop()
        if isinstance(part, TupleType):
            pending += reversed(part.fields)
        else:
            yield part


def skeleton(ty: AdtType) -> tuple[AdtType, tuple[Dim, ...]]:
    """Return an applied data type with each dim replaced by a parameter, and the dims in order."""
    dims: list[Dim] = []

    def take(dim: Dim) -> Dim:
        dims.append(dim)
        return Dim.of(f"dim_{len(dims) - 1}")

    general = map_type(ty, lambda _: None, take)
    assert isinstance(general, AdtType)
    return general, tuple(dims)


def _floats(ty: AdtType) -> AdtType:
    """Return an applied data type with unit for arguments that hold no floats, so that a list of
    sizes has the cotangent of a list of integers."""

    def plain(part: Type) -> Type | None:
        match part:
            case TensorType(_, dtype):
                return None if is_float(dtype) else UNIT
            case SizeType() | StrType() | RefType():
                return UNIT
            case _:
                return None

    found = map_type(ty, plain, lambda d: d)
    assert isinstance(found, AdtType)
    return found
