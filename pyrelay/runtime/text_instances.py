"""Functions of a text at the types of a call's arguments: `def @f[A](%x: A)` where A is what `%x`
turns out to be.

A program takes values of a type parameter whatever they are. A gradient has to look into them, so
what is differentiated is an entry of its own, for the types that the arguments have. Sizes stay
open: one instance serves tensors of every size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final, cast, final

from ..ir.dims import Dim, DimVar
from ..ir.expr import Call, Function, GlobalVar
from ..ir.module import AdtDef, Module
from ..ir.types import (
    BOOL,
    FLOAT,
    INT,
    STR,
    UNIT,
    AdtType,
    DType,
    Substitution,
    TensorType,
    TupleType,
    Type,
    TypeVar,
    substitution,
    subtypes,
)
from ..prelude.library import LIST
from ..prelude.values import List
from .representation import Instances, UserData
from .type_parameters import Typed, is_array, rank_and_dtype, solve, type_vars_of

_PLAIN: Final[Mapping[type, Type]] = {bool: BOOL, int: INT, float: FLOAT, str: STR}


def type_vars(function: Function) -> tuple[str, ...]:
    """Give the names of the types that the parameters of a function leave open."""
    own = {p.name for p in function.type_params if isinstance(p, TypeVar)}
    named = type_vars_of(v.ty for v in function.params if v.ty is not None)
    return tuple(name for name in named if name in own)


def instance(module: Module, entry: str, types: Mapping[str, Type]) -> tuple[Module, str]:
    """Give the module with an entry that calls another with its type parameters told; its name."""
    base = module.functions[entry]
    name = f"{entry}.{len(module.functions)}"
    at = Substitution({}, dict(types))
    params = tuple(replace(p, ty=None if p.ty is None else at(p.ty)) for p in base.params)
    callee = GlobalVar(entry, span=base.span)
    body = Call(callee, params, span=base.span)
    kept = tuple(p for p in base.type_params if p.name not in types)
    sizes = tuple(DimVar(n) for n in dict.fromkeys(_sizes(types)))
    made = Function(params, body, None, (*kept, *sizes), base.name, span=base.span)
    return module.with_functions({name: made}), name


def _sizes(types: Mapping[str, Type]) -> list[str]:
    tensors = (p for ty in types.values() for p in subtypes(ty) if isinstance(p, TensorType))
    return [str(dim) for ty in tensors for dim in ty.shape]


@final
class TypesOfValues:
    """Reads types off values; sizes get names that no text has."""

    def __init__(self, module: Module, data: UserData) -> None:
        self._adts: Final = module.adts
        self._owners: Final = {
            cls: (name, tag)
            for name, form in data.representations.items()
            if isinstance(form, Instances)
            for cls, tag in form.tags.items()
        }
        self._forms: Final = data.representations
        self._names: Final = count(1)

    def solve(self, given: Typed, wanted: Sequence[str]) -> dict[str, Type]:
        """Give what type parameters stand for; those are left out that no value tells."""
        return solve(given, wanted, self._fields_of, self._type, lambda _: True)

    def _fields_of(self, ty: AdtType, value: Any) -> Typed:
        if self._owners.get(type(value), ("", 0))[0] != ty.name:
            return []
        definition = self._adts[ty.name]
        return self._fields(definition, substitution(definition.type_params, ty.args), value)

    def _fields(self, definition: AdtDef, at: Substitution, value: Any) -> Typed:
        form = self._forms[definition.name]
        assert isinstance(form, Instances)
        types = definition.constructors[form.tag(value)].fields
        return list(zip(map(at, types), form.fields(value), strict=True))

    def _type(self, value: Any) -> Type | None:
        """Give the type of a value; None for what has none, or does not tell it."""
        if is_array(value):
            known = rank_and_dtype(value)
            return None if known is None else self._tensor(*known)
        if type(value) in _PLAIN:
            return _PLAIN[type(value)]
        if isinstance(value, tuple):
            return self._tuple(cast("tuple[Any, ...]", value))
        if isinstance(value, list | List):
            elements = (self._type(v) for v in cast("Sequence[Any]", value))
            known = next((ty for ty in elements if ty is not None), None)
            return None if known is None else AdtType(LIST, (known,))
        return self._instance(value)

    def _tensor(self, rank: int, dtype: DType) -> Type:
        return TensorType(tuple(Dim.of(f"size {next(self._names)}") for _ in range(rank)), dtype)

    def _tuple(self, value: tuple[Any, ...]) -> Type | None:
        if not value:
            return UNIT
        fields = [self._type(v) for v in value]
        known = tuple(f for f in fields if f is not None)
        return TupleType(known) if len(known) == len(fields) else None

    def _instance(self, value: Any) -> Type | None:
        owner = self._owners.get(type(value))
        if owner is None:
            return None
        definition = self._adts[owner[0]]
        names = [p.name for p in definition.type_params]
        if any(isinstance(p, DimVar) for p in definition.type_params):
            return None
        found = self.solve(self._fields(definition, Substitution({}, {}), value), names)
        return (
            AdtType(definition.name, tuple(found[n] for n in names))
            if len(found) == len(names)
            else None
        )
