"""Inference over a module: strongly connected groups of functions, callees first.

Hindley-Milner over types, dims and dtypes, with operator rules as constraints in a work-list. A
function is generalised over the sizes in its type; within a group recursion is monomorphic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from ...diagnostics.catalogue.types import (
    AssumptionRefused,
    BranchMismatch,
    CannotInfer,
    ConditionMismatch,
)
from ...diagnostics.diagnostic import CheckError, Problem
from ...ir.components import components
from ...ir.dims import Dim, DimVar
from ...ir.expr import Assumption, Call, Expr, Function, GlobalVar
from ...ir.module import Module
from ...ir.traverse import free_globals, rewrite, run
from ...ir.types import FnType, TypeHole, TypeParam, TypeVar, dims, subtypes
from ...prelude.library import part
from .cases import missing_cases
from .doubt import doubtful, has_placeholder, is_doubtful, is_open
from .elaborate import Elaborator
from .generate import Generator, Scheme
from .hidden_sizes import hidden_sizes
from .solver import Solver
from .templates import copy_templates
from .untold import untold_sizes

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ...ir.types import Type


def infer(module: Module, *, strict: bool = False) -> Module:
    """Give the module with every expression typed.

    With `strict`, an equation between sizes that the types do not prove is an error instead of an
    assumption checked at entry. Raises CheckError with all mistakes found.
    """
    schemes, problems = _infer_all(module, strict=strict, after_mistakes=False)
    if problems:
        raise CheckError(*problems)
    own = {n: schemes[n].function for n in module.functions}
    linked = {n: s.function for n, s in schemes.items() if n not in own}
    return Module(linked | own, module.adts)


def find_mistakes(module: Module) -> tuple[Problem, ...]:
    """Give the mistakes in a module in which translation has found others, and left placeholders:
    those that do not just follow from them."""
    return tuple(_infer_all(module, strict=False, after_mistakes=True)[1])


def _infer_all(
    module: Module, *, strict: bool, after_mistakes: bool
) -> tuple[dict[str, Scheme], list[Problem]]:
    """Give the schemes of all functions, those of the prelude that are linked first, and all
    mistakes."""
    functions = {name: copy_templates(f) for name, f in module.functions.items()}
    schemes: dict[str, Scheme] = {}
    linked: dict[str, Scheme] = {}
    problems: list[Problem] = []
    wrong: set[str] = set()
    """The functions with mistakes; those whose whole type is annotated have a scheme even so."""

    def link(name: str) -> Scheme:
        for reached, scheme in _prelude(name).items():
            linked.setdefault(reached, scheme)
        return linked[name]

    graph = {name: [g for g in free_globals(f) if g in functions] for name, f in functions.items()}
    missing = {g for f in functions.values() for g in free_globals(f)} - functions.keys()
    for group in components(graph):
        members = {name: functions[name] for name in group}
        unknown = missing | (wrong - schemes.keys())
        if _is_whole(members, unknown, after_mistakes=after_mistakes):
            found = _infer_group(module, members, schemes, link)
        else:
            found = _beside(module, members, schemes, link, unknown)
        if isinstance(found, list):
            problems += found
            wrong.update(group)
            declared = {n: _declared(f) for n, f in members.items()}
            schemes |= {n: s for n, s in declared.items() if s is not None}
            continue
        schemes |= {n: Scheme(_type(f), f) for n, f in found.items()}
        for function in found.values():
            problems += missing_cases(function, module.adts)
            problems += hidden_sizes(function)
        if strict:
            problems += _refused(found)
    return linked | schemes, problems


def _is_whole(
    functions: Mapping[str, Function], unknown: set[str], *, after_mistakes: bool
) -> bool:
    """Tell whether functions can be typed: translation refused nothing in them, and something is
    known of all that they call. After mistakes a parameter without a type may have a wrong one."""
    return not any(
        (after_mistakes and (has_placeholder(f) or any(map(is_open, f.params))))
        or unknown.intersection(free_globals(f))
        for f in functions.values()
    )


def _beside(
    module: Module,
    functions: dict[str, Function],
    schemes: dict[str, Scheme],
    link: Callable[[str], Scheme],
    unknown: Collection[str],
) -> list[Problem]:
    """Give the mistakes in functions that cannot be typed whole, as far as they stand alone."""
    found = _generate(module, functions, schemes, link, unknown)
    places = {p for f in functions.values() for p in doubtful(f, unknown)}
    return [p for p in _independent(found.work.problems) if not is_doubtful(p, places)]


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
    generator = _generate(module, functions, schemes, link, ())
    solver = generator.solver
    annotated = _annotated(functions)
    if generator.work.problems:
        return _independent(generator.work.problems)
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
    untold = untold_sizes(done.values(), solver)
    if untold:
        return untold
    assumptions = tuple(elaborator.assumption(a) for a in solver.assumptions)
    if annotated:
        return {
            n: _generalise(f, assumptions, annotated[n].type.type_params, ())
            for n, f in done.items()
        }
    shared = _in_order(_shared_params(solver, list(done.values())), functions.values())
    return {n: _generalise(f, assumptions, shared, list(done)) for n, f in done.items()}


def _independent(problems: Sequence[Problem]) -> list[Problem]:
    """Give the mistakes without those of branches whose condition is wrong already: `and` and `or`
    have both where they are used on tensors. A test for `None` is two patterns."""
    problems = list(dict.fromkeys(problems))
    conditions = [p.span for p in problems if isinstance(p, ConditionMismatch)]
    return [
        p
        for p in problems
        if not (isinstance(p, BranchMismatch) and any(_is_around(p, c) for c in conditions))
    ]


def _is_around(branches: BranchMismatch, condition: Span) -> bool:
    places = (branches.span, branches.first, branches.second)
    return min(p.start for p in places) <= condition.start and condition.end <= max(
        p.end for p in places
    )


def _generate(
    module: Module,
    functions: dict[str, Function],
    schemes: dict[str, Scheme],
    link: Callable[[str], Scheme],
    unknown: Collection[str],
) -> Generator:
    """Solve what the functions of a group say; nothing is known of those in `unknown`."""
    known = schemes | _annotated(functions)
    generator = Generator(
        Solver(strict_dtypes=module.strict_dtypes), known, module.adts, link, unknown=unknown
    )
    recursive = any(g in functions for f in functions.values() for g in free_globals(f))
    for name, function in functions.items():
        generator.declare(name, function, recursive=recursive)
    for name, function in functions.items():
        run(generator.define(name, function))
    generator.work.settle()
    return generator


def _annotated(functions: dict[str, Function]) -> dict[str, Scheme]:
    """Give the schemes of a group that is annotated whole; none, where a type is left out."""
    declared = {n: _declared(f) for n, f in functions.items()}
    found = {n: s for n, s in declared.items() if s is not None}
    return found if len(found) == len(functions) else {}


def _declared(function: Function) -> Scheme | None:
    """Give the scheme of a function whose whole type is annotated: it may then call itself at
    other sizes than its own (polymorphic recursion)."""
    types = (*(p.ty for p in function.params), function.result)
    if any(ty is None or any(isinstance(s, TypeHole) for s in subtypes(ty)) for ty in types):
        return None
    known = tuple(ty for ty in types if ty is not None)
    if any(dim.has_holes() for ty in known for dim in dims(ty)):
        return None
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
