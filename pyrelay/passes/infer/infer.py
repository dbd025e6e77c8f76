"""Inference over a module: strongly connected groups of functions, callees first.

Hindley-Milner over types, dims and dtypes, with operator rules as constraints in a work-list. A
function is generalised over the sizes in its type; within a group recursion is monomorphic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from ...diagnostics.catalogue.types import AssumptionRefused, CannotInfer
from ...diagnostics.diagnostic import CheckError, Problem
from ...ir.components import components
from ...ir.dims import Dim, DimVar
from ...ir.expr import Assumption, Call, Expr, Function, GlobalVar
from ...ir.module import Module
from ...ir.traverse import free_globals, rewrite, run
from ...ir.types import FnType, TypeHole, TypeParam, TypeVar, dims, subtypes
from ...prelude.library import part
from .cases import missing_cases
from .elaborate import Elaborator
from .generate import Generator, Scheme
from .solver import Solver
from .templates import copy_templates

if TYPE_CHECKING:
    from ...ir.types import Type


def infer(module: Module, *, strict: bool = False) -> Module:
    """Give the module with every expression typed.

    With `strict`, an equation between sizes that the types do not prove is an error instead of an
    assumption checked at entry. Raises CheckError with all mistakes found.
    """
    functions = {name: copy_templates(f) for name, f in module.functions.items()}
    schemes: dict[str, Scheme] = {}
    linked: dict[str, Scheme] = {}
    problems: list[Problem] = []

    def link(name: str) -> Scheme:
        for reached, scheme in _prelude(name).items():
            linked.setdefault(reached, scheme)
        return linked[name]

    graph = {name: [g for g in free_globals(f) if g in functions] for name, f in functions.items()}
    for group in components(graph):
        if any(g not in schemes and g not in group for name in group for g in graph[name]):
            continue  # a callee is wrong already; its own mistake is enough
        members = {name: functions[name] for name in group}
        found = _infer_group(module, members, schemes, link)
        if isinstance(found, list):
            problems += found
            continue
        schemes |= {n: Scheme(_type(f), f) for n, f in found.items()}
        for function in found.values():
            problems += missing_cases(function, module.adts)
        if strict:
            problems += _refused(found)
    if problems:
        raise CheckError(*problems)
    own = {n: schemes[n].function for n in module.functions}
    return Module({n: s.function for n, s in linked.items()} | own, module.adts)


@cache
def _prelude(name: str) -> Mapping[str, Scheme]:
    """Give a function of the prelude and all that it reaches, checked."""
    return {n: Scheme(_type(f), f) for n, f in infer(part(name)).functions.items()}


def _type(function: Function) -> FnType:
    assert isinstance(function.ty, FnType)
    return function.ty


def _refused(functions: dict[str, Function]) -> list[Problem]:
    return [
        AssumptionRefused(a.span, f"{a.left} == {a.right}")
        for f in functions.values()
        for a in f.assumptions
    ]


def _infer_group(
    module: Module,
    functions: dict[str, Function],
    schemes: dict[str, Scheme],
    link: Callable[[str], Scheme],
) -> dict[str, Function] | list[Problem]:
    solver = Solver()
    declared = {n: _declared(f) for n, f in functions.items()}
    annotated = {n: s for n, s in declared.items() if s is not None}
    is_annotated = len(annotated) == len(functions)
    known = schemes | annotated if is_annotated else schemes
    generator = Generator(solver, known, module.adts, link, strict_dtypes=module.strict_dtypes)
    recursive = any(g in functions for f in functions.values() for g in free_globals(f))
    for name, function in functions.items():
        generator.declare(name, function, recursive=recursive)
    for name, function in functions.items():
        run(generator.define(name, function))
    generator.work.settle()
    if generator.work.problems:
        return generator.work.problems
    unsolved = generator.work.unsolved()
    if unsolved:
        return [CannotInfer(unsolved[0].span, "this expression")]
    elaborator = Elaborator(generator)
    for name in functions:
        elaborator.name_open_types(generator.monomorphic[name])
    done: dict[str, Function] = {}
    for name, function in functions.items():
        built = run(elaborator.function(function))
        assert isinstance(built, Function)
        done[name] = built
    assumptions = tuple(elaborator.assumption(a) for a in solver.assumptions)
    if is_annotated:
        return {
            n: _generalise(f, assumptions, annotated[n].type.type_params, ())
            for n, f in done.items()
        }
    shared = _in_order(_shared_params(solver, list(done.values())), functions.values())
    return {n: _generalise(f, assumptions, shared, list(done)) for n, f in done.items()}


def _declared(function: Function) -> Scheme | None:
    """Give the scheme of a function whose whole type is annotated: it may then call itself at
    other sizes than its own (polymorphic recursion)."""
    types = (*(p.ty for p in function.params), function.result)
    if any(ty is None or any(isinstance(s, TypeHole) for s in subtypes(ty)) for ty in types):
        return None
    known = tuple(ty for ty in types if ty is not None)
    params = _in_order((p for ty in known[:-1] for p in _names_in(ty)), (function,))
    if not set(params).issuperset(_names_in(known[-1])):
        return None  # the result has a size that is still to be found
    return Scheme(FnType(known[:-1], known[-1], params), function)


def _in_order(found: Iterable[TypeParam], functions: Iterable[Function]) -> tuple[TypeParam, ...]:
    """Give type parameters in the order in which functions declare them, then the others: calls
    that name their type arguments name them so."""
    mentioned = dict.fromkeys(found)
    declared = {p: None for f in functions for p in f.type_params if p in mentioned}
    return tuple(declared | mentioned)


def _shared_params(solver: Solver, functions: Sequence[Function]) -> tuple[TypeParam, ...]:
    """Give the type parameters of a group: they call each other at one instance, so all of them
    share the parameters of all."""
    found: dict[TypeParam, None] = {}
    for function in functions:
        declared = _type(function)
        for ty in declared.params:
            found |= dict.fromkeys(p for p in _names_in(ty) if not _is_existential(solver, p))
    return tuple(found)


def _is_existential(solver: Solver, param: TypeParam) -> bool:
    return isinstance(param, DimVar) and solver.is_existential(param.name)


def _generalise(
    function: Function,
    assumptions: tuple[Assumption, ...],
    shared: tuple[TypeParam, ...],
    group: Sequence[str],
) -> Function:
    """Quantify a function over the parameters of its group; calls inside keep the instance."""
    ty = _type(function)
    own = tuple(Dim.atom(p) if isinstance(p, DimVar) else p for p in shared)
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
    """Give the names that a type mentions, in order: its sizes, then its type variables."""
    found: list[TypeParam] = []
    for dim in dims(ty):
        found += (a for a in dim.atoms() if isinstance(a, DimVar))
    found += (part for part in subtypes(ty) if isinstance(part, TypeVar))
    return found
