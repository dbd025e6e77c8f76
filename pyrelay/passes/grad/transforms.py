"""Expansion of transforms: `grad(f)` becomes a call of a function that is generated.

Functions are visited callees first, and within a function in order of evaluation, so what a
transform differentiates holds no transforms any more: an inner gradient is plain code in the outer
function, and needs no tags to be told apart from it. What a transform differentiates is made
first-order; a local function is lifted first, with what it captures as leading parameters that are
not differentiated. Where the function is not known, because it was passed in, the program around
it is made first-order as a whole. All obstacles are found before any is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...diagnostics.catalogue.gradient import (
    DifferentiatesItself,
    GrowingData,
    NotAScalar,
    NothingToDifferentiate,
    UnknownFunction,
)
from ...diagnostics.diagnostic import CheckError, Problem
from ...ir.components import components
from ...ir.expr import (
    Binding,
    Function,
    LetBlock,
    Rule,
    Transform,
    Var,
    type_of,
)
from ...ir.module import Module
from ...ir.traverse import free_globals, post_order
from ...ir.types import FnType, RefType, TupleType, Type, TypeVar, is_differentiable, show, subtypes
from ..first_order import NotFirstOrder, first_order
from .derive import Derivation
from .expanded import Expanded, Wanted, is_scalar
from .leaves import GrowingType
from .lifting import Known, Lifter, NotLocal
from .overlay import lay_over
from .rewriting import rewrite_calls
from .store import Store

if TYPE_CHECKING:
    from ...diagnostics.source import Span


def expand_transforms(module: Module) -> Module:
    """Give the module without transforms; itself if it has none.

    The module must be typed and in A-normal form. Raises CheckError.
    """
    if not any(map(_has_transforms, module.functions.values())):
        return module
    expansion = _Expansion(module)
    expansion.run()
    if expansion.problems:
        raise CheckError(*expansion.problems)
    expansion.forget_cells()
    return Module(expansion.store.functions, expansion.store.adts)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Site:
    """A transform that cannot be expanded where it stands, for now."""

    owner: str
    span: Span


@final
class _Expansion:
    """One run over one module."""

    def __init__(self, module: Module) -> None:
        self.store: Final = Store(module)
        self.problems: Final[list[Problem]] = []
        self._derivation: Final = Derivation(self.store)
        self._expanded: Final = Expanded(self._derivation)
        self._first_order: Final[set[str]] = set()
        self._waiting: list[_Site] = []
        self._mentioned_before: dict[str, dict[str, None]] = {}
        """What each closed function reached before the program was converted."""

    def run(self) -> None:
        """Expand everything, locally where that can be, else with the program around it."""
        self._expand_all()
        if not self._waiting or self.problems:
            return
        reasons = self._convert_programs()
        self._expand_all()
        for site in self._waiting:
            if site.owner in reasons or not self._is_converted(site.owner):
                why, place = reasons.get(site.owner, ("the function comes from outside", None))
                self.problems.append(UnknownFunction(site.span, why, place))
        if not self.problems:
            self._drop_open()

    def forget_cells(self) -> None:
        """Drop what was defined for cells and is not part of the program."""
        self._derivation.shadows.forget()

    def _expand_all(self) -> None:
        self._waiting = []
        graph = {name: free_globals(f) for name, f in self.store.functions.items()}
        for group in components(graph):
            for name in group:
                if _has_transforms(self.store.functions[name]):
                    self._expand(name)

    def _expand(self, name: str) -> None:
        """Expand the transforms in one function, in order of evaluation."""
        function = self.store.functions[name]
        lifter = Lifter(self.store, name)
        made: dict[Transform, tuple[tuple[Binding, ...], Function]] = {}
        for var, transform in _transforms(function):
            try:
                known = lifter.resolve(transform.function, type_of(transform.function))
            except NotLocal:
                self._waiting.append(_Site(name, transform.span))
                continue
            target = self._target(name, known, transform)
            if target is not None:
                expanded = Known(target, known.captures, known.sizes)
                local = lifter.expanded(var, expanded, type_of(transform))
                made[transform] = (known.sizes, local)
        if made:
            self.store.functions[name] = rewrite_calls(function, lifter, made)

    def _target(self, owner: str, known: Known, transform: Transform) -> str | None:
        """Give the function that a transform stands for; None if there is none (yet)."""
        reached = _reachable(self.store, known.name)
        if owner in reached:
            place = self.store.functions[owner].span
            self.problems.append(DifferentiatesItself(transform.span, owner, place))
            return None
        if any(_has_transforms(self.store.functions[r]) for r in reached):
            self._waiting.append(_Site(owner, transform.span))
            return None
        problems = list(_obstacles(self.store.functions[known.name], known, transform))
        self.problems.extend(problems)
        if problems:
            return None
        return self._derived(known, transform)

    def _derived(self, known: Known, transform: Transform) -> str | None:
        try:
            self._make_first_order(known.name)
        except NotFirstOrder as found:
            self.problems.append(UnknownFunction(transform.span, found.why, found.span))
            return None
        assert transform.wrt is not None, "inference says which parameters"
        wrt = tuple(i + len(known.captures) for i in transform.wrt)
        wanted = Wanted(transform.rule, known.name, wrt, transform.single, transform.has_aux)
        try:
            name = self._expanded.name(wanted)
        except GrowingType as found:
            self.problems.append(GrowingData(transform.span, str(found)))
            return None
        self.problems.extend(self._derivation.problems)
        self._derivation.problems.clear()
        return name

    def _make_first_order(self, name: str) -> None:
        if name in self._first_order:
            return
        made = first_order(Module(self.store.functions, self.store.adts), name)
        self._first_order.update(lay_over(self.store, made))

    def _convert_programs(self) -> dict[str, tuple[str, Span | None]]:
        """Make whole programs around waiting transforms first-order; give why some cannot be."""
        waiting = {site.owner for site in self._waiting}
        reasons: dict[str, tuple[str, Span | None]] = {}
        for name, function in list(self.store.functions.items()):
            reached = _reachable(self.store, name)
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
        """Tell whether a function that waits for a function has a caller that knows it."""
        functions = self.store.functions
        return not _is_closed(functions[owner]) and any(
            _is_closed(f) and owner in self._mentioned_before.get(name, ())
            for name, f in functions.items()
        )

    def _drop_open(self) -> None:
        """Drop functions that wait for a function from a caller: those that call them have
        versions of their own."""
        functions = self.store.functions
        dropped = {name for name, f in functions.items() if _has_transforms(f)}
        mentions = {name: free_globals(f) for name, f in functions.items()}
        while True:
            more = {n for n, used in mentions.items() if not dropped.isdisjoint(used)} - dropped
            if not more:
                break
            dropped |= more
        for name in dropped:
            del functions[name]


def _transforms(function: Function) -> Iterator[tuple[Var, Transform]]:
    """Give the transforms of a function with the variables bound to them, in order."""
    nodes = list(post_order(function))
    owners = {
        binding.value: binding.var
        for node in nodes
        if isinstance(node, LetBlock)
        for binding in node.bindings
        if isinstance(binding.value, Transform)
    }
    for node in nodes:
        if isinstance(node, Transform):
            yield owners[node], node


def _has_transforms(function: Function) -> bool:
    return any(isinstance(node, Transform) for node in post_order(function))


def _reachable(store: Store, name: str) -> dict[str, None]:
    """Give a function and all that it mentions, directly or through others."""
    found: dict[str, None] = {}
    pending = [name]
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = None
            pending += reversed(free_globals(store.functions[name]))
    return found


def _is_closed(function: Function) -> bool:
    """Tell whether neither functions nor types come into a function from its callers."""
    ty = function.ty
    assert isinstance(ty, FnType)
    parts = (part for t in (*ty.params, ty.result) for part in subtypes(t))
    polymorphic = any(isinstance(p, TypeVar) for p in function.type_params)
    return not polymorphic and not any(isinstance(part, FnType) for part in parts)


def _obstacles(function: Function, known: Known, transform: Transform) -> Iterator[Problem]:
    """Give what is wrong with differentiating a function in this way."""
    own = function.params[len(known.captures) :]
    for index in transform.wrt or ():
        param = own[index]
        if not is_differentiable(type_of(param)):
            ty = type_of(param)
            cells = any(isinstance(part, RefType) for part in subtypes(ty))
            yield NothingToDifferentiate(
                transform.span,
                _plain(function.name or known.name),
                param.name,
                param.span,
                "a cell, or a model" if cells else show(ty),
                cells,
            )
    assert isinstance(function.ty, FnType)
    result: Type = function.ty.result
    if transform.rule is Rule.VJP:
        return
    loss = result.fields[0] if transform.has_aux and isinstance(result, TupleType) else result
    if not is_scalar(loss):
        yield NotAScalar(
            transform.span,
            transform.rule.value,
            _plain(function.name or known.name),
            function.span,
            show(loss),
        )


def _plain(name: str) -> str:
    """Give the name of a lifted function as the user knows it."""
    return name.rpartition(".")[2]
