"""Programs at ranks: entries that take tensors of any rank, `Tensor[Float, (N, ...)]`.

A program has one type, so an entry is made for each combination of ranks: the numbers of dims that
stand in the places of `...`, in the order of the parameters. Within the program each call of such a
function is typed at the ranks of its own arguments (`infer/open_functions.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, product
from typing import Final, TypeAlias

from ..ir.dims import Dim, DimVar
from ..ir.expr import Call, Function, GlobalVar, Var
from ..ir.module import Module
from ..ir.names import Names
from ..ir.traverse import free_globals, replace_params
from ..ir.types import Type, TypeParam, dim_names, is_open_shape, map_type, open_shapes, with_dims

Ranks: TypeAlias = tuple[int, ...]
"""How many dims stand in the place of each `...`."""

MOST_DIMS: Final = 16
"""How many dims may stand in the place of `...`."""

_LOOKED_AT: Final = 5
_MOST_TRIES: Final = 64


def open_count(types: Sequence[Type | None]) -> int:
    """Return how often `...` stands in the types of parameters."""
    return sum(len(open_shapes(ty)) for ty in types if ty is not None)


def ranks_to_try(places: int) -> list[Ranks]:
    """Return the ranks at which a program is looked at that no call shows: the same for each of
    `places`, fewest dims first, and then different ones."""
    if not places:
        return [()]
    same = [(n,) * places for n in range(_LOOKED_AT)]
    others = sorted(product(range(_LOOKED_AT), repeat=min(places, 4)), key=sum)
    others = [(*o, *(0,) * (places - len(o))) for o in others]
    return list(dict.fromkeys((*same, *others)))[:_MOST_TRIES]


def at_ranks(module: Module, entry: str, ranks: Ranks) -> tuple[Module, str]:
    """Return the module with an entry at ranks, and its name."""
    base = module.functions[entry]
    mentions = (name for f in module.functions.values() for name in free_globals(f))
    if entry not in mentions:
        return module.with_functions({entry: _at(base, ranks)}), entry
    name = Names(module.functions).fresh(f"{entry}_at")
    params = tuple(replace(p) for p in base.params)
    body = Call(GlobalVar(entry, span=base.span), params, span=base.span)
    made = Function(params, body, None, base.type_params, base.name, span=base.span)
    return module.with_functions({name: _at(made, ranks)}), name


def _at(function: Function, ranks: Ranks) -> Function:
    """Return a function with dims in the places of `...` in its parameters."""
    taken = {n for p in function.params if p.ty is not None for n in dim_names(p.ty)}
    left = iter(ranks)
    own: list[TypeParam] = []
    changed: dict[Var, Var] = {}
    for param in function.params:
        names = (f"{param.name}{n}" for n in count(1))
        free = (n for n in names if n not in taken)
        ty = None if param.ty is None else _with_names(param.ty, left, free, own)
        if ty != param.ty:
            changed[param] = replace(param, ty=ty)
    made = replace_params(function, changed)
    return replace(made, type_params=(*made.type_params, *own))


def _with_names(ty: Type, left: Iterator[int], names: Iterator[str], own: list[TypeParam]) -> Type:
    def part(inner: Type) -> Type | None:
        if not is_open_shape(inner):
            return None
        found = [DimVar(next(names)) for _ in range(next(left))]
        own.extend(found)
        return with_dims(inner, tuple(Dim.atom(f) for f in found))

    return map_type(ty, part, lambda dim: dim)
