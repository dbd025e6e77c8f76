"""Types of a first-order program: function types become data types.

A function type is replaced by a generated data type, one for all function types that differ only
in sizes. It has no parameters: the sizes of what a piece of function data captured are its own,
known only to the running program. A user's data type with functions in its fields is copied for
each use, with the functions replaced. A size inside a function type counts as a plain integer,
since inference lets one stand for the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, final

from ...analysis.free_names import names_in
from ...ir.dims import ZERO, Dim, DimVar
from ...ir.module import AdtDef, ConstructorDef
from ...ir.types import INT, AdtType, FnType, SizeType, Type, dims, map_type, substitution, subtypes
from .closures import FunctionData, NotFirstOrder

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ...ir.names import Names


@final
class TypeTable:
    """Converts types, and holds the data types made on the way."""

    def __init__(self, adts: Mapping[str, AdtDef], names: Names, span: Span) -> None:
        self._adts: Final = dict(adts)
        self._names: Final = names
        self._span: Final = span
        self._holding: Final = _holding_functions(adts)
        self._functions: Final[dict[FnType, FunctionData]] = {}
        self._by_name: Final[dict[str, FunctionData]] = {}
        self._copies: Final[dict[Type, str]] = {}
        for name in adts:
            names.fresh(name)

    def holds_functions(self, ty: Type) -> bool:
        """Return whether values of a type of the source program may hold functions."""
        return any(
            isinstance(p, FnType) or (isinstance(p, AdtType) and p.name in self._holding)
            for p in subtypes(ty)
        )

    def convert(self, ty: Type) -> Type:
        """Return a type of the source program, without type variables, as a first-order one."""
        return map_type(ty, self._part, lambda d: d)

    def convert_signature(self, ty: FnType) -> FnType:
        """Return the type of a function that stays one, its parameters and result first-order."""
        return FnType(tuple(self.convert(p) for p in ty.params), self.convert(ty.result))

    def definition(self, name: str) -> AdtDef:
        """Return a data type of the first-order program by name."""
        made = self._by_name.get(name)
        return self._adts[name] if made is None else made.definition()

    def definitions(self) -> dict[str, AdtDef]:
        """Return all data types of the first-order program; those that hold functions are gone."""
        kept = {n: d for n, d in self._adts.items() if n not in self._holding}
        return {**kept, **{d.name: d.definition() for d in self._functions.values()}}

    def data_of(self, ty: Type) -> FunctionData | None:
        """Return the data type behind a first-order type that replaces a function type."""
        return self._by_name.get(ty.name) if isinstance(ty, AdtType) else None

    def _part(self, ty: Type) -> Type | None:
        if isinstance(ty, FnType):
            return self._function(ty)
        if isinstance(ty, AdtType) and ty.name in self._holding:
            return self._copy(ty)
        return None

    def _function(self, ty: FnType) -> Type:
        if ty.type_params:
            raise NotFirstOrder("a function that is polymorphic by itself is used as a value")
        signature = self.convert_signature(ty)
        plain = map_type(signature, lambda p: INT if isinstance(p, SizeType) else None, lambda d: d)
        shape = map_type(plain, lambda _: None, lambda _: ZERO)
        assert isinstance(shape, FnType)
        data = self._functions.get(shape)
        if data is None:
            named = _numbered(shape)
            assert isinstance(named, FnType)
            data = FunctionData(self._names.fresh("Fn"), named, self._span)
            self._functions[shape] = self._by_name[data.name] = data
        return AdtType(data.name)

    def _copy(self, ty: AdtType) -> Type:
        args = tuple(a if isinstance(a, Dim) else self.convert(a) for a in ty.args)
        plain = AdtType(ty.name, args)
        shape = map_type(plain, lambda _: None, lambda _: ZERO)
        copy = self._copies.get(shape)
        if copy is None:
            copy = self._copies[shape] = self._names.fresh(ty.name)
            named = _numbered(shape)
            assert isinstance(named, AdtType)
            self._adts[copy] = self._copied(copy, named)
        return AdtType(copy, tuple(dims(plain)))

    def _copied(self, name: str, ty: AdtType) -> AdtDef:
        source = self._adts[ty.name]
        replace = substitution(source.type_params, ty.args)
        constructors = tuple(
            ConstructorDef(c.name, tuple(self.convert(replace(f)) for f in c.fields), c.field_names)
            for c in source.constructors
        )
        params = tuple(DimVar(n) for n in names_in((ty,)))
        return AdtDef(name, params, constructors, source.span)


def _numbered(ty: Type) -> Type:
    """Return a type with a name of its own for every dim in it."""
    numbers = iter(range(sum(1 for _ in dims(ty))))
    return map_type(ty, lambda _: None, lambda _: Dim.of(f"n{next(numbers)}"))


def _holding_functions(adts: Mapping[str, AdtDef]) -> frozenset[str]:
    """Return the data types with a function type in a field, or in a field's data type."""
    inside = {name: tuple(p for f in adt.fields for p in subtypes(f)) for name, adt in adts.items()}
    holding = {n for n, parts in inside.items() if any(isinstance(p, FnType) for p in parts)}
    while True:
        more = {n for n, parts in inside.items() if n not in holding and _mentions(parts, holding)}
        if not more:
            return frozenset(holding)
        holding |= more


def _mentions(parts: Sequence[Type], names: set[str]) -> bool:
    return any(isinstance(p, AdtType) and p.name in names for p in parts)
