"""Functions of a text at the types of a call's arguments: `def @f[A](%x: A)` where A is what `%x`
turns out to be.

A program takes values of a type parameter whatever they are. A gradient has to look into them, so
what is differentiated is an entry of its own, for the types that the arguments have. Sizes stay
open: one instance serves tensors of every size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from ...ir.dims import Dim, DimVar
from ...ir.expr import Call, Function, GlobalVar
from ...ir.module import Module
from ...ir.types import Substitution, TensorType, Type, TypeVar, subtypes
from ..border.value_types import TypesOfValues, definitions_in, type_vars_of
from ..values.representation import UserData


def type_vars(function: Function) -> tuple[str, ...]:
    """Return the names of the types that the parameters of a function leave open."""
    own = {p.name for p in function.type_params if isinstance(p, TypeVar)}
    named = type_vars_of(v.ty for v in function.params if v.ty is not None)
    return tuple(name for name in named if name in own)


def instance(module: Module, entry: str, types: Mapping[str, Type]) -> tuple[Module, str]:
    """Return the module with an entry that calls another with its type parameters told; its
    name."""
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


def types_of_values(module: Module, data: UserData) -> TypesOfValues:
    """Return what reads types off values of a module's data types; sizes get names that no text
    has."""
    numbers = count(1)
    return TypesOfValues(
        definitions_in(module.adts, data), lambda _: Dim.of(f"size {next(numbers)}")
    )
