"""Calls under partial evaluation: what is unfolded, what is specialised, and when it ends.

A call of a function that does not reach itself is *unfolded*: its body is evaluated in its place.
A recursive function is unfolded as an *attempt*, which is abandoned, with all it has emitted, if it
makes too many calls, emits too much code, or calls itself under an unknown branch without a known
argument becoming smaller. The call is then of a *variant*: a residual function for the known parts
of the arguments (polyvariant specialisation), each made once. A variant whose recursion brings
other known parts, none of them smaller, is generalised to what both calls have in common.

Limits on variants, calls and code bound the whole: past them, functions stay as they are.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Final, final

from ...analysis.call_graph import call_graph, mentions
from ...analysis.callee import Callee
from ...analysis.dim_availability import shown, uncovered
from ...analysis.free_names import names_in
from ...analysis.retype import types_in
from ...dataclass import dataclass
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.dims import Dim
from ...ir.effect import effects_of
from ...ir.expr import Call, Function, GlobalVar, Var, is_atom, type_of
from ...ir.module import Module
from ...ir.names import Names
from ...ir.op import Effect
from ...ir.traverse import Steps, pre_order, run
from ...ir.types import FnType, Substitution, Type, as_arguments
from . import limits
from .activation import Activation
from .branches import Result, Tail
from .evaluator import Evaluator
from .joins import closing
from .operators import Operators
from .residual import Facts, Residual
from .values import (
    Key,
    Known,
    Made,
    Unknown,
    Value,
    common,
    descends,
    holes,
    is_static,
    is_whole,
    key_of,
    token,
    weight_of,
)


@final
@dataclass(slots=True, eq=False)
class Variant:
    """A residual function: a function of the program for some known parts of its arguments."""

    name: str
    of: str
    pattern: tuple[Value, ...]
    key: Key
    known_dims: Mapping[str, Dim]
    """The sizes that are numbers in it."""
    parent: Variant | None
    """The variant whose body asked for it first."""
    is_forwarder: bool = False
    """Whether it only calls a more general variant."""


@final
@dataclass(slots=True, eq=False)
class _Attempt:
    """The unfolding of a call of a recursive function."""

    name: str
    args: Sequence[Value]
    level: int
    started: int
    calls: int = 0
    together: Sequence[Value] | None = None
    """The generalisation of the call that ended the attempt and the first."""
    entered: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    """The calls under unknown branches, by what is known of the arguments."""


class _Abandoned(Exception):  # noqa: N818  no mistake
    """An attempt came to nothing."""

    def __init__(self, attempt: _Attempt) -> None:
        super().__init__(attempt.name)
        self.attempt: Final = attempt


class _Generalised(Exception):  # noqa: N818  no mistake
    """The variant in the making calls itself with other known parts."""

    def __init__(self, pattern: Sequence[Value]) -> None:
        super().__init__()
        self.pattern: Final = tuple(pattern)


@final
@dataclass(frozen=True, slots=True)
class _Site:
    """A call of a global function, in the terms of the residual function."""

    name: str
    type_args: Sequence[Type | Dim]
    args: Sequence[Value]
    ty: Type
    span: Span
    level: int = field(default=0)


@final
class Specialiser:
    """Makes the residual functions of a program."""

    def __init__(self, module: Module, operators: Operators, run: limits.Run) -> None:
        self._run: Final = run
        self._module: Final = module
        self._max_steps: Final = limits.max_steps(module)
        self._effects: Final = effects_of(module)
        self._residual: Final = Residual(module.adts)
        self._evaluator: Final = Evaluator(self._residual, operators, self._effects)
        self._evaluator.calls = self
        graph = call_graph(module)
        self._recursive: Final = graph.recursive
        self._groups: Final = graph.groups
        self._group: Final = {n: i for i, group in enumerate(graph.groups) for n in group}
        self._sizes: Final = _unfolded_sizes(module)
        self._callees: Final[dict[str, Callee]] = {}
        self._names: Final = Names(module.functions)
        self._variants: Final[dict[tuple[str, Key, tuple[object, ...]], Variant]] = {}
        self._counts: Final = Counter[str]()
        self._pending: Final = deque[Variant]()
        self._attempts: Final[dict[int, _Attempt]] = {}
        self._limited: Final = set[str]()
        self._allowance = 2 * limits.MAX_CALLS
        """How many calls attempts may still make that come to nothing; each has half of it."""
        self._failed: Final[dict[tuple[str, Key], tuple[Value, ...]]] = {}
        self._values: Final[dict[tuple[str, Key], Known]] = {}
        self._root: Variant | None = None
        self._given: frozenset[Dim] = frozenset()
        self._forwarders: Final[list[str]] = []

    @property
    def done(self) -> limits.Run:
        """The run with what this round has used."""
        origin = self._run.origin
        origins = {v.name: origin(v.of) for v in self._variants.values()}
        limited, is_exhausted = self._run.limited | self._limited, self.steps > self._max_steps
        return limits.Run(self._run.closed, limited, bool(self._limited), is_exhausted, origins)

    @property
    def steps(self) -> int:
        """How many nodes have been evaluated."""
        return self._evaluator.steps

    @cached_property
    def _dims(self) -> Names:
        """The names of sizes in use; most programs find no sizes."""
        nodes = (n for f in self._module.functions.values() for n in pre_order(f))
        return Names(name for node in nodes for name in names_in(types_in(node)))

    def module(self, entry: str) -> tuple[Module, Sequence[str]]:
        """Return the residual program of an entry, and the names of functions that only forward to
        others."""
        self.mentioned(entry)
        made: dict[str, Function] = {}
        while self._pending:
            variant = self._pending.popleft()
            made[variant.name] = self._made(variant)
        return replace(self._module, functions=made), self._forwarders

    def mentioned(self, name: str) -> None:
        """Note that a function is used whatever its arguments."""
        if name in self._module.functions:
            params = self._module.functions[name].params
            self._variant(name, tuple(Unknown(p) for p in params), {})

    # Residual functions.

    def _made(self, variant: Variant) -> Function:
        if self._is_exhausted and variant.name == variant.of:
            function = self._module.functions[variant.of]
            for node in pre_order(function.body):
                if isinstance(node, GlobalVar):
                    self.mentioned(node.name)
            return function
        self._root = variant
        self._attempts.clear()
        try:
            return run(self._function(variant, None))
        except _Generalised as found:
            self._attempts.clear()
            variant.is_forwarder = True
            self._forwarders.append(variant.name)
            return run(self._function(variant, found.pattern))

    def _function(self, variant: Variant, forwarded: Sequence[Value] | None) -> Steps[Function]:
        """Evaluate the body of a variant; or make it a call of one of a more general pattern."""
        function, evaluator = self._module.functions[variant.of], self._evaluator
        evaluator.facts, evaluator.pushed = Facts(), 0
        because = "" if variant.name == variant.of else f"specialised from `{variant.of}`"
        change = Substitution(dict(variant.known_dims), {})
        callee = self._callee(variant.of)
        around = Activation(variant.of, callee, change, variant.pattern, None, because)
        code, params = BlockBuilder(), list[Var]()
        args: list[Value] = []
        for param, pattern in zip(function.params, variant.pattern, strict=True):
            ty = around.type(param)
            value = yield self._residual.instance(pattern, ty, param.name, params, code)
            args.append(value)
            evaluator.assign(param, value, around, code)
        self._given = frozenset(d for p in params for d in shown(p.ty))
        result_type = around.types.type(function.result)
        assert result_type is not None
        if forwarded is not None:
            own = tuple(_at(change, a) for a in as_arguments(function.type_params))
            site = _Site(variant.of, own, args, result_type, function.span)
            result: Result = self._specialised(site, forwarded, code, tail=True)
        else:
            result = yield evaluator.body(function.body, around, code, tail=True)
        body = code.close(closing(self._residual, result, result_type, code))
        kept = tuple(p for p in function.type_params if p.name not in variant.known_dims)
        ty = FnType(tuple(type_of(p) for p in params), result_type, kept)
        node = around.types.node(function)
        assert isinstance(node, Function)
        assumed = tuple(a for a in node.assumptions if a.left != a.right)
        return replace(
            node, params=tuple(params), body=body, type_params=kept, assumptions=assumed, ty=ty
        )

    def _variant(
        self, name: str, pattern: tuple[Value, ...], known_dims: Mapping[str, Dim]
    ) -> Variant:
        """Return the variant for a pattern, a new one unless there is one."""
        key = key_of(pattern)
        whole = (name, key, tuple(known_dims.items()))
        found = self._variants.get(whole)
        if found is None:
            is_generic = not known_dims and all(isinstance(p, Unknown) for p in pattern)
            own = name if is_generic else self._names.fresh(name)
            self._counts[name] += 1
            found = Variant(own, name, pattern, key, known_dims, self._root)
            self._variants[whole] = found
            self._pending.append(found)
        return found

    # Calls.

    def call(
        self, call: Call, args: Sequence[Value], around: Activation, code: BlockBuilder, tail: bool
    ) -> Steps[Result]:
        """Return the value of a call, or the residual call in tail position."""
        node = around.types.node(call)
        assert isinstance(node, Call)
        assert isinstance(call.callee, GlobalVar)
        name, level = call.callee.name, self._evaluator.facts.level
        site = _Site(name, node.type_args, args, type_of(node), node.span, level)
        known = self._values.get((name, key_of(args))) if _is_short(args) else None
        if known is not None:
            return known
        if name in self._recursive:
            result = yield self._recursive_call(site, around, code, tail)
        elif self._is_exhausted or not (self._is_cheap(name) or any(map(is_static, args))):
            result = self._specialised(site, args, code, tail)
        else:
            result = yield self._unfolded(site, around, code, tail)
        is_pure = self._effects.of_call(name) is Effect.NONE
        if isinstance(result, Known) and is_pure and _is_short(args) and is_whole(args):
            self._values[name, key_of(args)] = result
        return result

    @property
    def _is_exhausted(self) -> bool:
        """Whether the limits of the whole are reached."""
        return self._residual.operations > limits.MAX_OPERATIONS or self.steps > self._max_steps

    def _limit(self, name: str) -> None:
        """Note that a function, and those that call each other with it, met a limit."""
        self._limited.update(map(self._run.origin, self._groups[self._group[name]]))

    def _is_cheap(self, name: str) -> bool:
        return self._sizes[name] <= limits.MAX_UNFOLDED

    def _recursive_call(
        self, site: _Site, around: Activation, code: BlockBuilder, tail: bool
    ) -> Steps[Result]:
        group = self._group[site.name]
        attempt = self._attempts.get(group)
        if attempt is not None:
            yield self._continued(attempt, site, around)
            return (yield self._unfolded(site, around, code, tail))
        key = site.name, key_of(site.args)
        if key in self._failed:
            return self._specialised(site, self._failed[key], code, tail)
        root = self._root
        is_inside = root is not None and self._group[root.of] == group
        is_free = is_inside or self._run.is_closed(site.name)
        if is_free or not any(map(is_static, site.args)):
            return self._specialised(site, site.args, code, tail)
        if self._is_exhausted or self._allowance < limits.FEWEST_CALLS:
            self._limit(site.name)
            return self._specialised(site, site.args, code, tail)
        return (yield self._attempted(site, around, code, tail))

    def _attempted(
        self, site: _Site, around: Activation, code: BlockBuilder, tail: bool
    ) -> Steps[Result]:
        group, evaluator = self._group[site.name], self._evaluator
        attempt = _Attempt(site.name, site.args, site.level, self._residual.operations)
        before = evaluator.facts
        saved = Facts(dict(before.learned), dict(before.cells), before.level)
        others = dict(self._attempts)
        self._attempts[group] = attempt
        inside, pushed = BlockBuilder(), evaluator.pushed
        try:
            result = yield self._unfolded(site, around, inside, tail)
        except _Abandoned as found:
            if found.attempt is not attempt:
                raise
            self._attempts.clear()
            self._attempts.update(others)
            evaluator.facts, evaluator.pushed = saved, pushed
            self._residual.operations = attempt.started
            pattern = tuple(site.args if attempt.together is None else attempt.together)
            self._failed[site.name, key_of(site.args)] = pattern
            return self._specialised(site, pattern, code, tail)
        del self._attempts[group]
        code.extend(inside)
        return result

    def _continued(self, attempt: _Attempt, site: _Site, around: Activation) -> Steps[None]:
        """Go on with an attempt at a call inside it; abandon it where it may not end."""
        attempt.calls += 1
        emitted = self._residual.operations - attempt.started
        most = self._allowance // 2
        if attempt.calls > most or emitted > most or self._is_exhausted:
            self._allowance -= min(attempt.calls, most)
            self._limit(attempt.name)
            raise _Abandoned(attempt)
        nearest: Activation | None = around
        while nearest is not None and nearest.name != site.name:
            nearest = nearest.caller
        if nearest is None or nearest.level == site.level:
            return
        if descends(nearest.args, site.args):
            known = site.name, *map(_identity, site.args)
            if known in attempt.entered:
                raise _Abandoned(attempt)  # arms that call it alike share a function
            attempt.entered.add(known)
            return
        if attempt.name == site.name:
            together: list[Value] = []
            for first, last in zip(attempt.args, site.args, strict=True):
                together.append((yield common(first, last)))
            attempt.together = together
        raise _Abandoned(attempt)

    def _unfolded(
        self, site: _Site, around: Activation, code: BlockBuilder, tail: bool
    ) -> Steps[Result]:
        """Evaluate the body of a function in the place of a call."""
        callee = self._callee(site.name)
        change = callee.change(site.type_args, site.ty, lambda name: self._dims.fresh(name))
        assert self._root is not None
        assumptions = self._module.functions[self._root.of].assumptions
        if not callee.fits(change, self._given, assumptions):
            return self._specialised(site, site.args, code, tail)
        because = f"inlined from `{site.name}`"
        inside = Activation(site.name, callee, change, site.args, around, because)
        inside.level = site.level
        pairs = list(zip(callee.function.params, site.args, strict=True))
        inside.doubt({name for dim in self._given for name in dim.names()})
        inside.learn_from(pairs)
        for param, value in pairs:
            self._evaluator.assign(param, value, inside, code)
        return (yield self._evaluator.body(callee.function.body, inside, code, tail=tail))

    def _callee(self, name: str) -> Callee:
        if name not in self._callees:
            self._callees[name] = Callee(self._module.functions[name])
        return self._callees[name]

    # Residual calls.

    def _specialised(
        self, site: _Site, pattern: Sequence[Value], code: BlockBuilder, tail: bool
    ) -> Result:
        """Return a call of a variant for the parts of the arguments that a pattern knows."""
        variant = self._requested(site, pattern)
        function = self._module.functions[site.name]
        parts = zip(variant.pattern, site.args, strict=True)
        atoms = tuple(v.atom for p, a in parts for v in holes(p, a))
        args = tuple(
            arg
            for param, arg in zip(function.type_params, site.type_args, strict=True)
            if param.name not in variant.known_dims
        )
        callee = GlobalVar(variant.name, span=site.span)
        node = Call(callee, atoms, type_args=args, ty=site.ty, span=site.span)
        if self._effects.of_call(site.name) & Effect.STATE:
            self._evaluator.facts.cells.clear()
        return Tail(node) if tail else self._residual.bind("t", node, code)

    def _requested(self, site: _Site, pattern: Sequence[Value]) -> Variant:
        """Return the variant for a call: generalised where it would be one of ever new ones."""
        function = self._module.functions[site.name]
        generic = tuple(Unknown(p) for p in function.params)
        if site.name in self._recursive and self._run.is_closed(site.name):
            return self._variant(site.name, generic, {})
        if self._is_exhausted or self._counts[site.name] >= limits.MAX_VARIANTS:
            self._limit(site.name)
            return self._variant(site.name, generic, {})
        types = [type_of(p) for p in function.params]
        pairs = zip(pattern, types, strict=True)
        found = tuple(
            run(self._residual.sealed(p, t))
            if weight_of(p) <= limits.MAX_WEIGHT
            else Unknown(p.atom)
            for p, t in pairs
        )
        ancestor = self._root
        while ancestor is not None:
            if ancestor.of == site.name and not descends(ancestor.pattern, found):
                both = zip(ancestor.pattern, found, strict=True)
                found = tuple(run(common(a, b)) for a, b in both)
                is_made = ancestor is not self._root or ancestor.is_forwarder
                if not is_made and ancestor.key != key_of(found):
                    raise _Generalised(found)
            ancestor = ancestor.parent
        kept = zip(found, generic, strict=True)
        found = tuple(p if is_static(p) else g for p, g in kept)
        known_dims = _known_dims(function, site, found)
        change = Substitution(dict(known_dims), {})
        inside = [
            run(self._residual.hole_types(p, change(t))) for p, t in zip(found, types, strict=True)
        ]
        given = {d for part in inside for ty in part for d in shown(ty)}
        taken = (change.dim(d) for d in self._callee(site.name).taken)
        if any(True for d in taken for _ in uncovered(d, given)):
            return self._variant(site.name, generic, {})
        return self._variant(site.name, found, known_dims)


def _known_dims(function: Function, site: _Site, pattern: Sequence[Value]) -> Mapping[str, Dim]:
    """Return the sizes that a call gives as numbers, of those that known parts are of."""
    parts = zip(function.params, pattern, strict=True)
    names = {n for p, v in parts if is_static(v) for n in names_in((type_of(p),))}
    given = zip(function.type_params, site.type_args, strict=True)
    return {
        p.name: d
        for p, d in given
        if isinstance(d, Dim) and d.constant is not None and p.name in names
    }


def _at(change: Substitution, arg: Type | Dim) -> Type | Dim:
    return change.dim(arg) if isinstance(arg, Dim) else change(arg)


def _is_short(args: Sequence[Value]) -> bool:
    """Return whether all arguments are constants."""
    return all(isinstance(a, Known) for a in args)


def _identity(value: Value) -> object:
    """Return the key that two known arguments share if they certainly are alike."""
    match value:
        case Unknown():
            return None
        case Known(atom):
            return token(atom)
        case Made():
            return value


def _unfolded_sizes(module: Module) -> Mapping[str, int]:
    """Return how many nodes functions have with all that they call, those that reach themselves
    counted once; a number above the limit for any that are larger."""
    graph = call_graph(module)
    sizes: dict[str, int] = {}
    for group in graph.groups:
        for name in group:
            function = module.functions[name]
            size = sum(not is_atom(n) for n in pre_order(function.body))
            calls = mentions(function).all.items()
            size += sum(count * sizes.get(callee, 0) for callee, count in calls)
            sizes[name] = min(size, limits.MAX_UNFOLDED + 1)
    return sizes
