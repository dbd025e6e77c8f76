"""Generalisation of a function whose types are found, and the view of its annotations before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from ...ir.dims import Dim, DimHole, DimVar
from ...ir.expr import Assumption, Call, Expr, Function, GlobalVar, function_type
from ...ir.traverse import rewrite
from ...ir.types import (
    FnType,
    Type,
    TypeHole,
    TypeParam,
    TypeVar,
    as_arguments,
    dims,
    map_type,
    subtypes,
)
from ..generate import Scheme
from ..solver import Solver


def annotated(
    functions: Mapping[str, Function], *, is_result_open: bool = False
) -> dict[str, Scheme]:
    """Return the schemes of a group that is annotated whole; none, where a type is left out."""
    types = {n: declared(f, is_result_open=is_result_open) for n, f in functions.items()}
    found = {n: s for n, s in types.items() if s is not None}
    return found if len(found) == len(functions) else {}


def declared(function: Function, *, is_result_open: bool = False) -> Scheme | None:
    """Return the scheme of a function whose whole type is annotated: it may then call itself at
    other sizes than its own (polymorphic recursion).

    A size of the result that no parameter mentions, as `?`, is still to be found, unless
    `is_result_open`: then it is one that only the running program knows, another for each call.
    """
    types = (*(p.ty for p in function.params), function.result)
    if any(ty is None or any(isinstance(s, TypeHole) for s in subtypes(ty)) for ty in types):
        return None
    known = tuple(ty for ty in types if ty is not None)
    if is_result_open:
        known = (*known[:-1], _with_open_sizes(known[-1]))
    if any(dim.has_holes() for ty in known for dim in dims(ty)):
        return None
    params = in_order(_quantified(known[:-1], known[-1]), (function,))
    if not is_result_open and not set(params).issuperset(_names_in(known[-1])):
        return None
    return Scheme(FnType(known[:-1], known[-1], params), function)


def _with_open_sizes(ty: Type) -> Type:
    """Return a type with names for the sizes that it leaves out."""
    taken = {d.name for d in dims(ty)}
    names = (f"size{i}" for i in count() if f"size{i}" not in taken)

    def name(atom: DimVar | DimHole) -> Dim | None:
        return Dim.of(next(names)) if isinstance(atom, DimHole) and atom.number == 0 else None

    return map_type(ty, lambda _: None, lambda d: d.substitute(name))


def in_order(found: Iterable[TypeParam], functions: Iterable[Function]) -> tuple[TypeParam, ...]:
    """Return type parameters in the order in which functions declare them, then the others: calls
    that name their type arguments name them so."""
    mentioned = dict.fromkeys(found)
    declared = {p: None for f in functions for p in f.type_params if p in mentioned}
    return tuple(declared | mentioned)


def shared_params(solver: Solver, functions: Sequence[Function]) -> tuple[TypeParam, ...]:
    """Return the type parameters of a group: they call each other at one instance, so all of them
    share the parameters of all."""
    found: dict[TypeParam, None] = {}
    for function in functions:
        declared = type_of(function)
        named = _quantified(declared.params, declared.result)
        found |= dict.fromkeys(p for p in named if not _is_existential(solver, p))
    return tuple(found)


def _quantified(params: Sequence[Type], result: Type) -> Iterator[TypeParam]:
    """Return the names that a function has for its calls to choose: those in parameters, and types
    in the result. A size that only the result mentions is one that its body finds."""
    for ty in params:
        yield from _names_in(ty)
    yield from (part for part in subtypes(result) if isinstance(part, TypeVar))


def _is_existential(solver: Solver, param: TypeParam) -> bool:
    return isinstance(param, DimVar) and solver.is_existential(param.name)


def generalise(
    function: Function,
    assumptions: tuple[Assumption, ...],
    shared: tuple[TypeParam, ...],
    group: Sequence[str],
) -> Function:
    """Quantify a function over the parameters of its group; calls inside keep the instance."""
    ty = type_of(function)
    own = as_arguments(shared)
    names = frozenset(group)

    def instantiate(node: Expr) -> Expr:
        match node:
            case Call(GlobalVar(name)) if name in names and not node.type_args:
                return replace(node, type_args=own)
            case _:
                return node

    if own:
        function = replace(function, body=rewrite(function.body, instantiate))
    return replace(
        function,
        type_params=shared,
        assumptions=assumptions,
        ty=FnType(ty.params, ty.result, shared),
    )


def _names_in(ty: Type) -> list[TypeParam]:
    """Return the names that a type mentions, in order: its sizes, then its type variables."""
    found: list[TypeParam] = []
    for dim in dims(ty):
        found += (a for a in dim.atoms() if isinstance(a, DimVar))
    found += (part for part in subtypes(ty) if isinstance(part, TypeVar))
    return found


def type_of(function: Function) -> FnType:
    """Return the type of a function that has been typed."""
    return function_type(function)
