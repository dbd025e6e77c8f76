"""The functions that `vmap` makes: one call for all elements of a batch.

A function is written once for each set of its parameters that are batched; what it returns batched
follows from its code. Functions call each other, and may be recursive, so this is found by a least
fixed point: code is written on the assumption that nothing is batched which is not known to be, and
once more where an assumption fails, callees first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...analysis.call_graph import CallGraph, reachable
from ...analysis.dim_availability import sizes_in
from ...dataclass import dataclass
from ...diagnostics.catalogue.batching import BatchedResult
from ...diagnostics.diagnostic import Problem
from ...ir.dims import Dim, DimVar
from ...ir.expr import Call, Expr, Function, Rule, Var, function_type, type_of
from ...ir.names import Names
from ...ir.traverse import post_order, run
from ...ir.types import RefType, SizeType, Type, as_arguments
from ...operators.builder import Builder, Value
from ...operators.host.shadow import shadow
from ..deriving.cotangents.cells import without_sizes
from ..deriving.deriver import Wanted, plain_name
from ..deriving.ruled import rule_of, without_rules
from ..deriving.store import function_like
from .body import Body
from .derivable import has_lanes, ruled, with_floats_batched
from .frame import Frame
from .masks import Mask, is_any, joined
from .mixtures import Mixtures
from .pairs import Mapped, Pairs
from .wrapper import Wrapper

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ..deriving.workspace import Workspace


@final
@dataclass(frozen=True, slots=True)
class _Key:
    """A function with the parameters of it that are batched."""

    function: str
    masks: tuple[Mask, ...]


_CELLS: Final = "cells"
"""Stands for the cells of all types among what code depends on."""

_Fact: TypeAlias = "_Key | Type | str"
"""A fact on which code depends: what a function returns batched, or what cells of a type hold."""


@final
@dataclass(slots=True)
class _Code:
    """The code of a function for a batch, with the facts that it depends on, the functions that it
    calls, and what cannot be batched in it."""

    function: Function
    facts: set[_Fact]
    callees: dict[_Key, None]
    problems: dict[Problem, None]


@final
class Vectorizer:
    """Defines the functions that map functions over a batch."""

    def __init__(self, workspace: Workspace) -> None:
        self.problems: list[Problem] = []
        store = self._store = workspace.store
        self._space: Final = workspace
        self._unruled: Final = workspace.unruled
        self._plain: Final[dict[str, Function]] = {}
        """The ruled functions without their rules."""
        self._batches: Final = Mixtures(store)
        self._forms: Final = self._batches.forms
        self._pairs: Final = Pairs(self, self._batches, store)
        self._known: Final[dict[Wanted, str]] = {}
        self._rules: Final[dict[Wanted, str]] = {}
        """The ruled functions of maps of all floats."""
        self._mapped: Final[dict[str, Mapped]] = {}
        """The functions that `vmap` has made."""
        self._by_pairs: Final[set[str]] = set()
        """Those of them that are mapped once more over pairs of elements."""
        self._places: Final[dict[Wanted, Span]] = {}
        self._names: Final[dict[_Key, str]] = {}
        self._joins: Final[dict[tuple[_Key, Expr], Mask]] = {}
        self._results: Final[dict[_Key, Mask]] = {}
        self._cells: Final[dict[Type, Mask]] = {}
        self._shadows: Final[dict[str, set[Type]]] = {}
        """The types of the shadows that functions find, in what they call too."""
        self._done: Final[set[_Key]] = set()
        self._current: _Key | None = None
        self._has_grown = False
        """Whether more of the value of branches is batched than was assumed before."""
        self._facts: set[_Fact] = set()
        """The facts that the code being written depends on, and so on."""
        self._callees: dict[_Key, None] = {}
        self._found: dict[Problem, None] = {}
        self._changed: Final[set[_Fact]] = set()
        """The facts that have changed since code was last chosen to be written again."""

    def obstacles(self, wanted: Wanted, place: Span) -> Iterator[Problem]:
        """Return the obstacles that show before the function is made first-order."""
        self._places[wanted] = place
        yield from ()

    def name(self, wanted: Wanted) -> str:
        """Return the name of the function that a transform stands for, defined once."""
        if wanted not in self._known:
            name = self._direct(wanted)
            if self._space.makers is not None and has_lanes(self._space, name):
                name = self._derivable(wanted) or name
            self._known[wanted] = name
        return self._known[wanted]

    def has_lanes(self, names: Iterable[str]) -> bool:
        """Return whether any of the functions maps another one of which elements take different
        arms."""
        return any(n in self._mapped and has_lanes(self._space, n) for n in names)

    # What the code of one function asks.

    def callee(self, name: str, masks: tuple[Mask, ...]) -> tuple[str, Mask]:
        """Return the function that computes a function for a batch, and what it returns batched, as
        far as is known."""
        key = _Key(name, masks)
        if key not in self._names:
            self._names[key] = self._store.function_name(f"{name}_batch")
            result = function_type(self._store.functions[name]).result
            self._results[key] = self._forms.none(result)
        self._facts.add(key)
        self._callees[key] = None
        return self._names[key], self._results[key]

    def join(self, place: Expr, mask: Mask) -> Mask:
        """Return the mask of the value of branches, as far as it is known, which grows by
        `mask`."""
        assert self._current is not None
        key = (self._current, place)
        known = self._joins.get(key, mask)
        found = self._joins[key] = joined(known, mask)
        if found != known:
            self._has_grown = True
        return found

    def cell(self, ty: RefType, mask: Mask) -> Mask:
        """Return the mask of the contents of cells of a type, sizes aside, which grows by
        `mask`."""
        place = without_sizes(ty)
        known = self._cells.get(place, mask)
        found = joined(known, mask)
        self._facts.add(place)
        if found != known or (place not in self._cells and is_any(found)):
            self._changed.update((place, _CELLS))
        self._cells[place] = found
        return found

    def has_batched_shadows(self, name: str) -> bool:
        """Return whether a function, or one that it calls, finds shadows of cells that hold a
        cotangent for each element, though nothing that it takes does."""
        self._facts.add(_CELLS)
        if not any(map(is_any, self._cells.values())):
            return False
        if name not in self._shadows:
            functions = self._store.functions
            self._shadows[name] = {
                without_sizes(type_of(node))
                for reached in reachable(functions, (name,))
                for node in post_order(functions[reached].body)
                if isinstance(node, Call) and node.callee is shadow
            }
        return any(is_any(self._cells.get(ty, False)) for ty in self._shadows[name])

    def report(self, problem: Problem) -> None:
        """Take note of what cannot be batched."""
        self._found[problem] = None

    # Functions.

    def _define(self, key: _Key) -> Mask:
        """Write a function for a batch and all that it calls; return what it returns batched."""
        codes: dict[_Key, _Code] = {}
        self._settle(codes, [key])
        while mapped := self._mapped_in(codes, key):
            self._by_pairs.update(mapped)
            self._settle(codes, [k for k in codes if k.function in mapped])
        written = _reached(codes, key)
        self._done.update(written)
        for each in written:
            self._store.functions[self._names[each]] = codes[each].function
            rule = rule_of(self._store.functions[each.function])
            if rule is None or each.function in self._space.mapped:
                continue
            if rule.rule is not Rule.CHECKPOINT:
                self._unruled[self._names[each]] = rule
        self.problems += _problems(codes, written)
        return self._results[key]

    def _settle(self, codes: dict[_Key, _Code], keys: Iterable[_Key]) -> None:
        """Write functions and what they call until no assumption fails."""
        groups = CallGraph(self._store.functions).groups
        depths = {name: depth for depth, group in enumerate(groups) for name in group}
        waiting: list[tuple[int, int, _Key]] = []
        ages: dict[_Key, int] = {}
        stale: set[_Key] = set()

        def wait(key: _Key) -> None:
            if key not in stale:
                stale.add(key)
                heappush(waiting, (depths[key.function], ages.setdefault(key, len(ages)), key))

        for key in keys:
            wait(key)
        while waiting:
            key = heappop(waiting)[-1]
            stale.remove(key)
            code = codes[key] = self._code(key)
            for callee in code.callees:
                if callee not in codes and callee not in self._done:
                    wait(callee)
            for each in codes if self._changed else ():
                if not self._changed.isdisjoint(codes[each].facts):
                    wait(each)
            if self._has_grown:
                wait(key)
            self._changed.clear()

    def _mapped_in(self, codes: Mapping[_Key, _Code], key: _Key) -> set[str]:
        """Return the mapped functions that are written as the code that they are, where something
        cannot be batched."""
        written = _reached(codes, key)
        if not _problems(codes, written):
            return set()
        return {k.function for k in written if k.function in self._mapped} - self._by_pairs

    def _function(self, name: str) -> Function:
        """Return a function of the program, which follows its body if it is a ruled one."""
        function = self._store.functions[name]
        if rule_of(function) is None:
            return function
        if name not in self._plain:
            self._plain[name] = without_rules(function, self._store.functions)
        return self._plain[name]

    def _code(self, key: _Key) -> _Code:
        self._current, self._has_grown = key, False
        self._facts, self._callees, self._found = set(), {}, {}
        return _Code(self._written(key), self._facts, self._callees, self._found)

    def _written(self, key: _Key) -> Function:
        function, name = self._function(key.function), self._names[key]
        span = function.span.derived(f"`{plain_name(key.function)}` of a batch")
        names = Names([*sizes_in(function), *(p.name for p in function.type_params)])
        size = names.fresh("batch")
        frame = Frame(Builder(span, names), Dim.of(size), self._batches)
        lanes = Var(names.fresh("size"), SizeType(frame.count), span=span)
        params = [lanes]
        for param, mask in zip(function.params, key.masks, strict=True):
            ty = self._forms.type(type_of(param), mask, frame.count)
            new = Var(names.fresh(param.name), ty, span=param.span)
            params.append(new)
            frame.bind(param, (frame.builder.value(new), mask))
        code = Body(self, self._batches)
        if key.function in self._by_pairs:
            mapped = self._mapped[key.function]
            value, found = run(self._pairs.value(code, mapped, frame))
            mask = self.join(function.body, found)
            value = self._batches.widened(value, type_of(function.body), found, mask, frame.count)
            body = frame.builder.block(value)
        else:
            body = run(code.tail(function.body, frame, function.body))
            mask = self.join(function.body, self._forms.none(type_of(function.body)))
        if mask != self._results[key]:
            self._results[key] = mask
            self._changed.add(key)
        type_params = (*function.type_params, DimVar(size))
        return function_like(function, name, tuple(params), body, span, type_params)

    # The function that takes arguments with the batch at any axis.

    def _direct(self, wanted: Wanted) -> str:
        """Define the function that calls that of a batch; return its name."""
        function = self._store.functions[wanted.function]
        name = self._store.function_name(f"{wanted.function}_vmap")
        wrapper = Wrapper(self._batches, function, wanted)
        key = _Key(wanted.function, tuple(wrapper.masks))
        batched, _ = self.callee(wanted.function, key.masks)
        mask = self._define(key) if key not in self._done else self._results[key]
        self._mapped[name] = Mapped(name, key.function, key.masks, batched, wrapper.out_axes)
        if wrapper.out_axes is None and is_any(mask):
            place = self._places.get(wanted, wrapper.span)
            self.problems.append(BatchedResult(place, plain_name(wanted.function)))
        ty = self._forms.type(function_type(function).result, mask, wrapper.count)
        type_args = (*as_arguments(function.type_params), wrapper.count)
        value = wrapper.builder.apply(batched, (wrapper.size(), *wrapper.args), ty, type_args)
        self._store.functions[name] = wrapper.made(name, value, mask)
        return name

    def _derivable(self, wanted: Wanted) -> str | None:
        """Define the function that calls the ruled one of a map of all floats; return its name,
        None where a part of the result has no batch."""
        inner = with_floats_batched(self._space, wanted)
        if inner is None:
            return None
        if inner not in self._rules:
            self._rules[inner] = ruled(self._space, inner, self._direct(inner))
        function = self._store.functions[wanted.function]
        name = self._store.function_name(f"{wanted.function}_vmap")
        wrapper = Wrapper(self._batches, function, wanted)
        wrapper.size()
        masks = Wrapper(self._batches, function, inner).masks
        args: list[Value] = []
        for each in zip(wrapper.args, function.params, wrapper.masks, masks, strict=True):
            arg, param, mask, full = each
            args.append(self._batches.widened(arg, type_of(param), mask, full, wrapper.count))
        result = function_type(function).result
        every = self._forms.full(result)
        ty = self._forms.type(result, every, wrapper.count)
        type_args = (*as_arguments(function.type_params), wrapper.count)
        value = wrapper.builder.apply(self._rules[inner], args, ty, type_args)
        self._store.functions[name] = wrapper.made(name, value, every)
        return name


def _problems(codes: Mapping[_Key, _Code], written: Iterable[_Key]) -> dict[Problem, None]:
    return {problem: None for key in written for problem in codes[key].problems}


def _reached(codes: Mapping[_Key, _Code], key: _Key) -> dict[_Key, None]:
    """Return a function for a batch and all that it calls, of those that are written."""
    found: dict[_Key, None] = {}
    pending = deque([key])
    while pending:
        each = pending.popleft()
        if each not in found and each in codes:
            found[each] = None
            pending += codes[each].callees
    return found
