"""Inference over a module: strongly connected groups of functions, callees first.

Hindley-Milner over types, dims and dtypes, with operator rules as constraints in a work-list. A
function is generalised over the sizes in its type; within a group recursion is monomorphic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, final

from ..analysis.components import components
from ..diagnostics.catalogue.dtypes import NarrowedNumber
from ..diagnostics.catalogue.lists import ElementMismatch
from ..diagnostics.catalogue.sizes import AssumptionRefused, ShapeMismatch, SizesUnsolved
from ..diagnostics.catalogue.types import BranchMismatch, ConditionMismatch
from ..diagnostics.catalogue.undetermined import (
    CannotInfer,
    UndeterminedParameter,
    UndeterminedResult,
)
from ..diagnostics.diagnostic import CheckError, Problem
from ..ir.derived_types.batch_dims import batch_definitions
from ..ir.expr import Function, GlobalVar, Var
from ..ir.module import Module
from ..ir.traverse import free_globals, post_order, replace_params, run
from ..ir.types import (
    UNKNOWN_DIM,
    AdtType,
    TypeHole,
    element_name,
    map_type,
    open_shapes,
    subtypes,
)
from ..prelude.library import library, part
from .carried import Origin
from .coercions.conversions import Narrowed, OutOfRange
from .dim_scoping.hidden_sizes import hidden_sizes
from .dim_scoping.size_checks import calls_in_branches, without_undetermined
from .dim_scoping.unavailable import undetermined_sizes
from .elaborate import Elaborator
from .escaping_sizes import escaping_sizes
from .explanations.cases import missing_cases
from .explanations.error_recovery import doubtful, has_placeholder, is_doubtful, is_open
from .explanations.plain_sizes import plain
from .explanations.written_types import meaningless_types
from .generate import Generator, Scheme
from .polymorphism.comparisons import without_equality
from .polymorphism.generalise import (
    annotated,
    declared,
    generalise,
    in_order,
    shared_params,
    type_of,
)
from .polymorphism.let_polymorphism import copy_templates
from .polymorphism.open_functions import Copies, OpenFunctions, OpenInstances
from .quotients import equation_text
from .solver import Solver, holes_of
from .stored_layouts import stored_layouts
from .unknown_sizes import with_own_sizes

if TYPE_CHECKING:
    from ..diagnostics.source import Span
    from ..ir.types import DType, Type


def infer(module: Module, *, strict: bool = False) -> Module:
    """Return the module with every expression typed.

    With `strict`, an equation between sizes that the types do not prove is an error instead of an
    assumption checked at entry. Raises CheckError with all mistakes found.
    """
    found = _Inference(module, strict=strict, after_mistakes=False)
    found.run()
    if found.problems:
        raise CheckError(*found.problems)
    return found.typed()


def find_mistakes(module: Module) -> tuple[Problem, ...]:
    """Return the mistakes in a module in which translation has found others, and left placeholders:
    those that do not just follow from them."""
    found = _Inference(module, strict=False, after_mistakes=True)
    found.run()
    return tuple(found.problems)


@final
class _Inference:
    """The inference of one module: the schemes found so far, and all mistakes."""

    def __init__(self, module: Module, *, strict: bool, after_mistakes: bool) -> None:
        self._module: Final = module
        self._strict: Final = strict
        self._after_mistakes: Final = after_mistakes
        self._adts: Final = dict(module.adts)
        functions = module.functions
        if module.strict_dtypes:
            functions = with_own_sizes(functions)
        self._functions: Final = {n: copy_templates(f) for n, f in functions.items()}
        self._schemes: Final[dict[str, Scheme]] = {}
        self._linked: Final[dict[str, Scheme]] = {}
        """Functions of the prelude that the module itself does not mention."""
        self._wrong: Final[set[str]] = set()
        """The functions with mistakes; those whose whole type is annotated have a scheme too."""
        self._stretches = module.strict_dtypes
        """Whether sizes that are not known to be equal may broadcast, as in Relay's text."""
        self._opened: Final = OpenFunctions()
        self._instances: Final = OpenInstances(self._functions)
        self.problems: list[Problem] = []

    def run(self) -> None:
        """Look at all functions."""
        self.problems += meaningless_types(self._module)
        if self.problems:
            return  # what is open here would be taken for one type below
        functions = self._functions
        mentions = {n: free_globals(f) for n, f in functions.items()}
        missing = {g for found in mentions.values() for g in found} - functions.keys()
        graph = {n: [g for g in found if g in functions] for n, found in mentions.items()}
        for group in components(graph):
            members = {name: functions[name] for name in group}
            unknown = missing | (self._wrong - self._schemes.keys())
            if not _is_whole(members, unknown, after_mistakes=self._after_mistakes):
                self._refuse(members, self._beside(members, unknown))
            elif _has_open(members) and any(g in self._opened for n in group for g in graph[n]):
                # To type it now would take copies of copies, at each step of a long chain.
                self._opened.add(members)
            else:
                self._infer(members)
        for members in self._opened.unused(mentions):
            self._infer(members, is_last=True)
        if not self.problems:
            typed = {n: s.function for n, s in (self._linked | self._schemes).items()}
            self.problems += without_equality(typed, self._adts)

    def typed(self) -> Module:
        """Return the module, all of whose functions are right, with every type written."""
        found = {n: s.function for n, s in self._schemes.items()}
        own: dict[str, Function] = {}
        for name in self._module.functions:
            # An open function that is not there is used only at types that its users name.
            own |= {n: found[n] for n in (name, *self._instances.others(name)) if n in found}
        linked = {n: s.function for n, s in self._linked.items()} | found
        rest = {n: f for n, f in linked.items() if n not in own}
        return Module(rest | own, self._adts)

    def _infer(self, members: Mapping[str, Function], *, is_last: bool = False) -> None:
        """Type a group of functions, or leave it to its uses, unless it has none."""
        solver = self._solver()
        copies = {n: Copies(self._opened, solver) for n in members}
        placed = {n: copies[n].put_into(f) for n, f in members.items()}
        functions = {n: f for n, (f, _) in placed.items()}
        found = self._typed_with_carried(functions, solver)
        if isinstance(found, list) and solver.stretches:
            # What a loop carries has one size, so an operand that is added to it has that, too.
            self._stretches = False
            found = self._typed_with_carried(functions, self._solver(last=solver.last))
            self._stretches = True
        if not isinstance(found, list):
            self._keep({n: (f, placed[n][1]) for n, f in found.items()})
        elif not is_last and isinstance(found[0], UndeterminedParameter | UndeterminedResult):
            self._opened.add(members)
        else:
            for made in copies.values():
                found = [made.blamed(problem) for problem in found]
            self._refuse(members, found)

    def _typed_with_carried(
        self, functions: Mapping[str, Function], solver: Solver
    ) -> dict[str, Function] | list[Problem]:
        """Return the functions of a group with their types, or their mistakes.

        An operator is typed when its operands are known. Where one was a weak number then and has
        risen above the result since, all is typed again, now with the dtypes that were found: so
        they only rise, and this ends. The mistakes of the first time are the ones reported.
        """
        first: list[Problem] = []
        while True:
            try:
                found = self._typed_group(functions, solver)
            except OutOfRange as literal:
                found = list[Problem]([literal.problem])
            except Narrowed as narrowed:
                wanted = str(narrowed.wanted)
                problem = NarrowedNumber(narrowed.span, str(narrowed.actual), wanted)
                found = list[Problem]([problem])
            if not isinstance(found, list):
                return found
            first = first or found
            risen = solver.carried.risen(solver.resolve_dtype)
            if risen == solver.carried.known:
                return first
            solver = self._solver(risen, solver.last)

    def _typed_group(
        self, functions: Mapping[str, Function], solver: Solver
    ) -> dict[str, Function] | list[Problem]:
        """Return the functions of a group with their types, or their mistakes."""
        schemes = annotated(functions)
        generator = self._generated(functions, schemes, solver, ())
        found = _infer_group(generator, functions, schemes)
        if schemes or not isinstance(found, list):
            return found
        # The sizes of the results that annotations leave open are no sizes in particular.
        functions = {n: _with_models(f, generator) for n, f in functions.items()}
        if self._module.strict_dtypes:
            functions = {n: _with_result(n, f, generator) for n, f in functions.items()}
        schemes = annotated(functions, is_result_open=True)
        if not schemes:
            return found
        solver = self._solver(solver.carried.known, solver.last)
        again = _infer_group(self._generated(functions, schemes, solver, ()), functions, schemes)
        return found if isinstance(again, list) else again

    def _keep(self, found: Mapping[str, tuple[Function, list[tuple[str, ...]]]]) -> None:
        """Note the types of a group; with each function come the names of the copies it has."""
        for function, _ in found.values():
            self.problems += missing_cases(function, self._adts)
            self.problems += hidden_sizes(function)
            self.problems += stored_layouts(function)
            if self._strict:
                self.problems += _refused(function)
        lifted = {n: self._instances.lift(f, copies) for n, (f, copies) in found.items()}
        instances = self._instances.functions
        self._schemes.update((n, Scheme(type_of(f), f)) for n, f in (instances | lifted).items())

    def _refuse(self, members: Mapping[str, Function], problems: Sequence[Problem]) -> None:
        self.problems += (p for p in problems if p not in self.problems)
        self._wrong.update(members)
        types = {n: declared(f) for n, f in members.items()}
        self._schemes.update((n, s) for n, s in types.items() if s is not None)

    def _beside(self, members: Mapping[str, Function], unknown: Collection[str]) -> list[Problem]:
        """Return the mistakes in functions that cannot be typed whole, as far as they stand
        alone."""
        solver = self._solver()
        found = self._generated(members, annotated(members), solver, unknown)
        places = {p for f in members.values() for p in doubtful(f, unknown)}
        return [p for p in _independent(found.work.problems) if not is_doubtful(p, places)]

    def _generated(
        self,
        functions: Mapping[str, Function],
        schemes: Mapping[str, Scheme],
        solver: Solver,
        unknown: Collection[str],
    ) -> Generator:
        """Solve the constraints of the functions of a group, some of them with schemes already;
        nothing is known of those in `unknown`."""
        known = {**self._schemes, **schemes}
        generator = Generator(solver, known, self._adts, self._link, unknown=unknown)
        recursive = any(g in functions for f in functions.values() for g in free_globals(f))
        if recursive:
            solver.recursive_at_other_sizes = bool(schemes)
            solver.in_branches.update(calls_in_branches(functions.values()))
        for name, function in functions.items():
            generator.declare(name, function, recursive=recursive)
        for name, function in functions.items():
            run(generator.define(name, function))
        generator.work.settle()
        return generator

    def _solver(self, known: Mapping[Origin, DType] | None = None, last: int = 1) -> Solver:
        return Solver(
            strict_dtypes=self._module.strict_dtypes,
            mention=self._mention,
            known=known,
            last=last,
            stretches=self._stretches,
        )

    def _mention(self, adt: str) -> None:
        if adt in self._adts:
            return
        if element_name(adt) is None:
            self._adts[adt] = library().adts[adt]
        else:
            self._adts.update(batch_definitions(AdtType(adt, ()), self._adts))

    def _link(self, name: str) -> Scheme:
        for reached, scheme in _prelude(name).items():
            self._linked.setdefault(reached, scheme)
        return self._linked[name]


def _with_models(function: Function, generator: Generator) -> Function:
    """Return a function whose parameters that hold models have the types that were found for them:
    these do not depend on how it calls itself."""
    solver = generator.solver
    models = [p for p in function.params if is_open(p.ty) and not _is_left_out(p.ty)]
    types = {p: solver.resolve(generator.vars[p]) for p in models}
    found = {p: replace(p, ty=ty) for p, ty in types.items() if not holes_of(ty)}
    return replace_params(function, found)


def _with_result(name: str, function: Function, generator: Generator) -> Function:
    """Return a function whose result is annotated as far as it was found: Relay's text says what is
    `?` in the parameters, and the result may have another size in each call."""
    found = generator.solver.resolve(generator.monomorphic[name].result)
    if function.result is not None or any(isinstance(s, TypeHole) for s in subtypes(found)):
        return function
    result = map_type(found, lambda _: None, lambda d: d if d.constant is not None else UNKNOWN_DIM)
    return replace(function, result=result)


def _is_whole(
    functions: Mapping[str, Function], unknown: set[str], *, after_mistakes: bool
) -> bool:
    """Return whether functions can be typed: translation refused nothing in them, and something is
    known of all that they call. After mistakes a parameter without a type may have a wrong one."""
    return not any(
        (after_mistakes and (has_placeholder(f) or any(is_open(p.ty) for p in f.params)))
        or unknown.intersection(free_globals(f))
        for f in functions.values()
    )


def _has_open(functions: Mapping[str, Function]) -> bool:
    """Return whether calls of functions may determine the types of their parameters."""
    return any(is_open(p.ty) for f in functions.values() for p in f.params)


@cache
def _prelude(name: str) -> Mapping[str, Scheme]:
    """Return a function of the prelude and all that it reaches, checked."""
    return {n: Scheme(type_of(f), f) for n, f in infer(part(name)).functions.items()}


def _is_left_out(annotation: Type | None) -> bool:
    """Return whether a parameter has no annotation, or one of any rank; those that hold models have
    one with holes."""
    return annotation is None or isinstance(annotation, TypeHole) or bool(open_shapes(annotation))


def _is_recursive(function: Function, group: Collection[str]) -> bool:
    """Return whether a function mentions one of its group, or the copy of one."""
    return any(isinstance(n, GlobalVar | Var) and n.name in group for n in post_order(function))


def _refused(function: Function) -> list[Problem]:
    needed = [AssumptionRefused(a.span, f"{a.left} == {a.right}") for a in function.assumptions]
    return list(map(plain, needed))


def _infer_group(
    generator: Generator, functions: Mapping[str, Function], schemes: Mapping[str, Scheme]
) -> dict[str, Function] | list[Problem]:
    """Return the functions of a solved group with their types, or their mistakes."""
    solver = generator.solver
    if generator.work.problems:
        return [plain(p, solver.running) for p in _independent(generator.work.problems)]
    waiting = generator.work.unsolved()
    if waiting:
        # A recursion that lacks its base case has no type; the case is what is missing.
        missing = [p for f in functions.values() for p in missing_cases(f, generator.adts)]
        return missing or [_undetermined(generator, functions, waiting[0].span)]
    open_size = generator.work.unsolved_equation()
    if open_size is not None:
        dim, span = open_size
        return [SizesUnsolved(span, equation_text(dim))]
    escaping = escaping_sizes(generator, functions.values())
    if escaping:
        return escaping
    elaborator = Elaborator(generator)
    for name in functions:
        elaborator.name_open_types(generator.monomorphic[name])
    done: dict[str, Function] = {}
    for name, function in functions.items():
        built = run(elaborator.function(function))
        assert isinstance(built, Function)
        done[name] = without_undetermined(built)
    undetermined = undetermined_sizes(done.values(), solver)
    if undetermined:
        return undetermined
    assumptions = tuple(elaborator.assumption(a) for a in solver.assumptions)
    if schemes:
        return {
            n: generalise(f, assumptions, schemes[n].type.type_params, ()) for n, f in done.items()
        }
    shared = in_order(shared_params(solver, list(done.values())), functions.values())
    return {n: generalise(f, assumptions, shared, list(done)) for n, f in done.items()}


def _independent(problems: Sequence[Problem]) -> list[Problem]:
    """Return the mistakes without those of branches whose condition is wrong already: `and` and
    `or` have both where they are used on tensors. A test for `None` is two patterns."""
    problems = list(dict.fromkeys(problems))
    otherwise = [p for p in problems if isinstance(p, ShapeMismatch) and p.name is not None]
    if otherwise:
        return list[Problem](otherwise)  # what is computed from a parameter is wrong with it
    wrong = [p for p in problems if isinstance(p, ConditionMismatch)]
    conditions = [p.span for p in wrong]
    optionals = {p.actual for p in wrong if p.is_optional}
    return [
        p
        for p in problems
        if not any(_is_around(p, c) for c in conditions)
        and not (p not in wrong and _is_about(p, optionals))
    ]


def _is_about(problem: Problem, types: Collection[str]) -> bool:
    """Return whether a mistake is about a value of one of some types: where a condition tests an
    optional wrongly, nothing is known of it afterwards."""
    found = problem.diagnostic()
    texts = [found.title, *(x.text for x in (found.primary, *found.secondary) if x is not None)]
    return any(ty in text for ty in types for text in texts)


def _is_around(problem: Problem, condition: Span) -> bool:
    """Return whether a mistake is about the branches of a condition."""
    match problem:
        case BranchMismatch(span, first, _, second):
            places = (span, first, second)
        case ElementMismatch(span):
            places = (span,)
        case _:
            return False
    return min(p.start for p in places) <= condition.start and condition.end <= max(
        p.end for p in places
    )


def _undetermined(generator: Generator, functions: Mapping[str, Function], span: Span) -> Problem:
    """Return the problem of an expression whose type is undetermined. A use of the function may
    determine it, where the type of a parameter or of the result depends on it."""
    solver = generator.solver

    def is_undetermined(found: Type) -> bool:
        return bool(holes_of(solver.resolve(found)))

    for name, function in functions.items():
        for param in function.params:
            if _is_left_out(param.ty) and is_undetermined(generator.vars[param]):
                return UndeterminedParameter(span, param.name, function.name or name, param.span)
        if is_open(function.result) and is_undetermined(generator.monomorphic[name].result):
            is_recursive = _is_recursive(function, functions)
            return UndeterminedResult(span, function.name or name, is_recursive=is_recursive)
    return CannotInfer(span, "this expression")
