"""Expansion of transforms: `grad(f)` becomes a call of a function that is generated.

Functions are visited callees first, and within a function in order of evaluation, so what a
transform takes holds no transforms any more: an inner gradient is plain code in the outer function,
and needs no tags to be distinguished from it. What a transform takes is made first-order; a local
function is lifted first, with what it captures as leading parameters. Where the function is not
known, because it was passed in, the program around it is made first-order as a whole. A deriver
defines the function that a transform stands for; the table of them says which has which rules. All
obstacles are found before any is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, final

from ...analysis.bindings import definitions
from ...analysis.call_graph import CallGraph, callees, reachable
from ...dataclass import dataclass
from ...diagnostics.catalogue.batching import CannotBatch
from ...diagnostics.catalogue.derivatives import RuleOfBatch
from ...diagnostics.catalogue.gradient import (
    DifferentiatesItself,
    GrowingData,
    GrowingTypes,
    UnknownFunction,
)
from ...diagnostics.diagnostic import CheckError, Problem
from ...ir.expr import Function, Rule, Transform, Var, function_type, type_of
from ...ir.module import Module
from ...ir.traverse import nodes_of, post_order
from ...ir.types import FnType, TypeVar, subtypes
from ...ir.verify import Stage
from ..base import Context, Opaque, Pass, nothing_opaque
from ..closures import EverNewTypes, NotFirstOrder, first_order
from ..deriving.deriver import Deriver, Wanted
from ..deriving.leaves import GrowingType
from ..deriving.ruled import (
    has_annotations,
    has_derivatives,
    has_transforms,
    rule_of,
    without_rules,
)
from ..deriving.store import Store
from ..deriving.workspace import Makers, Workspace
from ..forward import ForwardMode
from ..grad import ReverseMode
from ..vmap import Vectorizer
from .autocast import Autocast
from .composed import is_jacobian, with_transforms_composed
from .idle_rules import without_idle_rules
from .inline_higher_order import bring_to_callers, returns_functions, with_functions_captured
from .jacobians import Along, at_once, one_by_one
from .lifting import KnownFunction, Lifter, NotLocal, rewrite_calls
from .overlay import lay_over
from .settling import settled

if TYPE_CHECKING:
    from ...diagnostics.source import Span


def expand_transforms(
    module: Module, entry: str | None = None, opaque: Opaque = nothing_opaque
) -> Module:
    """Return the module without transforms; itself if it has none.

    The module must be typed and in A-normal form. With `entry`, functions that it does not reach do
    not matter, and go. Operators that are `opaque` are called in the forward pass of a derivative
    even where another one keeps what the backward pass needs. Raises CheckError.
    """
    if entry is not None:
        reached = reachable(module.functions, (entry,))
        if len(reached) < len(module.functions):
            kept = {n: f for n, f in module.functions.items() if n in reached}
            module = replace(module, functions=kept)
    if entry is not None and any(map(has_annotations, module.functions.values())):
        module = without_idle_rules(module, entry)
    if not any(map(has_derivatives, module.functions.values())):
        return _without_rules(module)
    expansion = _Expansion(module, opaque, at_once)
    expansion.run()
    if expansion.fails_for_lost_maps:
        expansion = _Expansion(module, opaque, at_once, are_maps_kept=True)
        expansion.run()
    if expansion.problems and _has_jacobians(module):
        expansion = _Expansion(module, opaque, one_by_one)
        expansion.run()
    if expansion.problems:
        raise CheckError(*expansion.problems)
    expansion.finish()
    return _without_rules(Module(expansion.store.functions, expansion.store.adts))


def _has_jacobians(module: Module) -> bool:
    return any(map(is_jacobian, nodes_of(module)))


def _without_rules(module: Module) -> Module:
    """Return the module without annotations of functions; itself if it has none."""
    if not any(map(has_annotations, module.functions.values())):
        return module
    plain = {name: without_rules(f, module.functions) for name, f in module.functions.items()}
    return replace(module, functions=plain)


@final
@dataclass(frozen=True, slots=True)
class ExpandTransforms(Pass):
    """Write out derivatives as functions."""

    name: ClassVar = "grad"
    needs: ClassVar = Stage.ANF
    gives: ClassVar = Stage.DERIVED

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return expand_transforms(module, context.entry, context.overridden)


DERIVERS: Final[Mapping[Rule, Callable[[Workspace], Deriver]]] = {
    Rule.GRAD: ReverseMode,
    Rule.VALUE_AND_GRAD: ReverseMode,
    Rule.VJP: ReverseMode,
    Rule.JVP: ForwardMode,
    Rule.VMAP: Vectorizer,
    Rule.AUTOCAST: Autocast,
}
"""The deriver that carries out the transforms of each rule. Rules with the same one share its
work."""


_LOOK_INSIDE: Final = (Rule.VMAP, Rule.AUTOCAST)
"""The rules that follow the body of a function that has a derivative of its own."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Site:
    """A transform that cannot be expanded where it stands, for now."""

    owner: str
    span: Span
    rule: Rule
    why: tuple[str, Span | None] | None = None
    """The obstacles to making the function first-order."""


@final
class _Expansion:
    """One run over one module. If `are_maps_kept`, the derivatives of functions that `vmap` makes
    are maps too, where their code could not be mapped once more."""

    def __init__(
        self, module: Module, opaque: Opaque, along: Along, *, are_maps_kept: bool = False
    ) -> None:
        self._along: Final = along
        self.store: Final = Store(module, opaque)
        self.problems: Final[list[Problem]] = []
        self._are_maps_lost = False
        """Whether a map is differentiated as the code that it is by then."""
        self._incomplete: Final[set[str]] = set()
        """Derived functions in which something is missing that is among the problems."""
        self._space: Final = Workspace(self.store)
        self._derivers: Final = {make: make(self._space) for make in DERIVERS.values()}
        vectorizer = self._derivers[Vectorizer]
        assert isinstance(vectorizer, Vectorizer)
        self._vectorizer: Final = vectorizer
        if are_maps_kept:
            reverse = self._derivers[ReverseMode]
            assert isinstance(reverse, ReverseMode)
            self._space.makers = Makers(vectorizer.name, reverse.pulled)
        self._first_order: Final[set[str]] = set()
        self._waiting: list[_Site] = []
        self._brought: Final[set[str]] = set()
        """The functions that have been inlined where they are called."""
        self._are_local_inlined = False
        """Whether local functions that return functions have been."""
        self._mentioned_before: dict[str, dict[str, None]] = {}
        """The functions that each closed function reached before the program was converted."""

    def run(self) -> None:
        """Expand everything, locally where that can be, else with the program around it."""
        for name, function in list(self.store.functions.items()):
            composed = with_transforms_composed(function, self._along, self.store)
            self.store.functions[name] = with_functions_captured(self.store, composed)
        self._expand_all()
        while self._waiting and not self.problems and self._bring_to_callers():
            self._expand_all()
        if not self._waiting or self.problems:
            return
        reasons = self._convert_programs()
        self._expand_all()
        for site in self._waiting:
            if site.owner in self._brought:
                continue  # those that call it have its code
            if site.owner in reasons or not self._is_converted(site.owner):
                why = site.why or self._outside(site.owner)
                why = reasons.get(site.owner, why)
                self.problems.append(UnknownFunction(site.span, *why))
        if not self.problems:
            self._drop_open(reasons)

    def _outside(self, owner: str) -> tuple[str, Span | None]:
        """Return why a function that nobody in the program calls cannot be differentiated."""
        names = [p.name for p in self.store.functions[owner].type_params if isinstance(p, TypeVar)]
        if not names:
            return "the function comes from outside", None
        return f"what `{names[0]}` stands for is decided by who calls it from the program", None

    def _bring_to_callers(self) -> bool:
        """Inline the functions that return functions, and those that wait for the function of a
        pullback, into their callers; return whether that changed anything.

        Other gradients need less: the program made first-order.
        """
        functions = self.store.functions
        wanted = {name for name, f in functions.items() if returns_functions(f)}
        if any(site.rule is Rule.VJP for site in self._waiting):
            wanted |= {site.owner for site in self._waiting}
        called = {n for f in functions.values() for n in callees(f)}
        open_ = [name for name in functions if name in wanted & called - self._brought]
        if not open_ and self._are_local_inlined:
            return False
        self._brought.update(open_)
        self._are_local_inlined = True
        return bring_to_callers(self.store, open_)

    @property
    def fails_for_lost_maps(self) -> bool:
        """Whether something cannot be batched that might be if maps were kept."""
        return self._are_maps_lost and any(isinstance(p, CannotBatch) for p in self.problems)

    def finish(self) -> None:
        """Drop what was defined on the way and is not part of the program."""
        self._space.finish()

    def _expand_all(self) -> None:
        self._waiting = []
        for group in CallGraph(self.store.functions).groups:
            for name in group:
                if self.fails_for_lost_maps:
                    return
                if has_transforms(self.store.functions[name]):
                    self._expand(name)

    def _expand(self, name: str) -> None:
        """Expand the transforms in one function, in order of evaluation."""
        function = self.store.functions[name]
        lifter = Lifter(self.store, name)
        for var, transform in _transforms(function):
            if transform.rule.is_annotation:
                self._settle(lifter, var, transform)
                continue
            try:
                known = lifter.resolve(transform.function, type_of(transform.function))
            except NotLocal:
                self._waiting.append(_Site(name, transform.span, transform.rule))
                continue
            target = self._target(name, known, transform)
            if target is not None:
                expanded = KnownFunction(target, known.captures, known.sizes)
                lifter.expanded(var, transform, expanded)
        self.store.functions[name] = rewrite_calls(function, lifter)

    def _settle(self, lifter: Lifter, var: Var, transform: Transform) -> None:
        """Make a ruled function of a transform that annotates one, where its code is at hand. A
        gradient that meets another one waits for it."""
        try:
            lifter.expanded(var, transform, settled(lifter, transform))
        except NotLocal:
            return

    def _target(self, owner: str, known: KnownFunction, transform: Transform) -> str | None:
        """Return the function that a transform stands for; None if there is none (yet)."""
        reached = reachable(self.store.functions, (known.name,))
        if owner in reached:
            place = self.store.functions[owner].span
            self.problems.append(DifferentiatesItself(transform.span, owner, place))
            return None
        if any(has_transforms(self.store.functions[r]) for r in reached):
            self._waiting.append(_Site(owner, transform.span, transform.rule))
            return None
        if transform.rule not in _LOOK_INSIDE and (lost := self._space.unruled.keys() & reached):
            rules = [self._space.unruled[name] for name in sorted(lost)]
            self.problems.append(RuleOfBatch(transform.span, rules[0].span, rules[0].rule.value))
            return None
        if not self._incomplete.isdisjoint(reached):
            return None
        if self._space.makers is None and transform.rule not in _LOOK_INSIDE:
            self._are_maps_lost |= self._vectorizer.has_lanes(reached)
        captures = transform.captures + len(known.captures)
        wanted = Wanted(transform.rule, known.name, captures, transform.options, transform.policy)
        deriver = self._derivers[DERIVERS[transform.rule]]
        problems = list(deriver.obstacles(wanted, transform.span))
        self.problems.extend(problems)
        if problems:
            return None
        return self._derived(owner, deriver, wanted, transform.span)

    def _derived(self, owner: str, deriver: Deriver, wanted: Wanted, span: Span) -> str | None:
        try:
            self._make_first_order(wanted.function)
        except EverNewTypes as found:
            self.problems.append(GrowingTypes(span, found.name, found.place))
            return None
        except NotFirstOrder as found:
            # What it is passed may be known once the program around it is converted.
            site = _Site(owner, span, wanted.rule, (found.why, found.span))
            self._waiting.append(site)
            return None
        try:
            name = deriver.name(wanted)
        except GrowingType as found:
            self.problems.append(GrowingData(span, str(found)))
            return None
        if deriver.problems:
            self._incomplete.add(name)
        for each in self._derivers.values():  # they ask each other
            self.problems.extend(each.problems)
            each.problems.clear()
        return name

    def _make_first_order(self, name: str) -> None:
        if name in self._first_order:
            return
        made = first_order(Module(self.store.functions, self.store.adts), name)
        self._first_order.update(lay_over(self.store, made))

    def _convert_programs(self) -> dict[str, tuple[str, Span | None]]:
        """Make whole programs around waiting transforms first-order; return why some cannot be."""
        waiting = {site.owner for site in self._waiting}
        reasons: dict[str, tuple[str, Span | None]] = {}
        for name, function in list(self.store.functions.items()):
            reached = reachable(self.store.functions, (name,))
            if not _is_closed(function) or not waiting & reached.keys():
                continue
            self._mentioned_before[name] = reached
            try:
                lay_over(
                    self.store, first_order(Module(self.store.functions, self.store.adts), name)
                )
            except NotFirstOrder as found:
                reasons[name] = (found.why, found.span)
        return reasons

    def _is_converted(self, owner: str) -> bool:
        """Return whether a function that waits for a function has a caller that knows it."""
        functions = self.store.functions
        return not _is_closed(functions[owner]) and any(
            _is_closed(f) and owner in self._mentioned_before.get(name, ())
            for name, f in functions.items()
        )

    def _drop_open(self, reasons: Mapping[str, tuple[str, Span | None]]) -> None:
        """Drop functions that wait for a function from a caller: those that call them have
        versions of their own. One that has none, for one of the reasons, is a problem."""
        functions = self.store.functions
        dropped = {name for name, f in functions.items() if has_transforms(f)}
        mentions = {name: callees(f) for name, f in functions.items()}
        while True:
            more = {n for n, used in mentions.items() if not dropped.isdisjoint(used)} - dropped
            if not more:
                break
            dropped |= more
        for name in dropped:
            if name in reasons:
                site = next(s for s in self._waiting if s.owner in dropped)
                self.problems.append(UnknownFunction(site.span, *reasons[name]))
            del functions[name]


def _transforms(function: Function) -> Iterator[tuple[Var, Transform]]:
    """Return the transforms of a function with the variables bound to them, inner ones first."""
    if rule_of(function) is not None:
        return
    owners = {value: var for var, value in definitions(function).items()}
    for node in post_order(function):
        if isinstance(node, Transform):
            var = owners[node]
            assert isinstance(var, Var)
            yield var, node


def _is_closed(function: Function) -> bool:
    """Return whether neither functions nor types come into a function from its callers."""
    ty = function_type(function)
    parts = (part for t in (*ty.params, ty.result) for part in subtypes(t))
    polymorphic = any(isinstance(p, TypeVar) for p in function.type_params)
    return not polymorphic and not any(isinstance(part, FnType) for part in parts)
