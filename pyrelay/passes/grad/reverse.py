"""The reverse sweep: backward code for the steps of a function, last step first.

A cotangent is kept per variable and leaf, as an atom of the backward code; a leaf without one is
zero. Inside a branch the sweep goes on with the cotangents from outside, so a branch that adds
nothing to one gives it back as it is, and nothing is summed twice. Operators contribute by their
rules, calls by the backward functions of their callees.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol, final

from ...diagnostics.catalogue.gradient import NoDerivative
from ...ir.expr import (
    Binding,
    Call,
    Constructor,
    Expr,
    GlobalVar,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.op import Expansion, NoGradient, Op
from ...ir.traverse import Steps
from ...ir.types import UNIT, TupleType, Type
from ...operators.builder import Builder, Value
from ..deriving.cotangents.masks import bits
from .adjoints import Adjoints, Key
from .code import Code, Ending, Fork, PulledCall, Work
from .construction import cotangents_of_matched, reverse_construction
from .finish import split
from .operators import pull_operator

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from ...ir.names import Names
    from ..deriving.activity import Activity
    from ..deriving.bodies import Arm, Body, Step
    from ..deriving.cotangents.cells import Cells
    from ..deriving.workspace import Workspace


class Tools(Protocol):
    """The interface of a sweep to the derivation it is part of."""

    space: Workspace
    activity: Activity
    cells: Cells
    """Those that a gradient flows through."""
    problems: list[Problem]
    """The obstacles, collected while everything else is derived."""

    def pulled_call(self, work: Work, step: Step, given: int) -> Steps[PulledCall | None]:
        """Return how a call is differentiated, `given` leaves of its result having a cotangent;
        None if its result does not depend on anything of interest."""
        ...


@final
class Sweep(Adjoints):
    """One sweep over one function, for the paths with one ending."""

    def __init__(self, tools: Tools, work: Work, names: Names, ending: Ending) -> None:
        super().__init__(tools.space.cotangents, tools.space.border, work, names)
        self._tools: Final = tools
        self._ending: Final = ending
        self._touching: Final = tools.space.cell_use.touching(work.source, tools.cells)
        self.code = Code()
        self.next: dict[int, Expr] = {}
        """When a loop goes on: the cotangents of the next iteration's parameters, by leaf."""

    # Steps.

    def run(self, body: Body) -> Steps[None]:
        """Reverse all steps of a body."""
        for step in reversed(body.steps):
            span = step.value.span.derived(f"gradient of {self.work.source.name}")
            self.builder.span = span
            if step.arms:
                yield self._branch(step)
            elif step.expansion:
                self._expansion(step)
            elif isinstance(step.value, Call) and isinstance(step.value.callee, GlobalVar):
                yield self._call(step, step.value)
            else:
                self._simple(step)

    def finished(self, results: Iterable[Expr]) -> Code:
        """Return the code of a sweep that has ended."""
        self.code.bindings = self.builder.bindings
        self.code.results = tuple(results)
        return self.code

    def _expansion(self, step: Step) -> None:
        if any((step.var, leaf) in self.cotangents_of for leaf in range(self.width(step.var))):
            self.work.expanded.add(step)
            for part in reversed(step.expansion):
                self._simple(part)

    def _simple(self, step: Step) -> None:
        cts = self.take(step.var)
        if step in self._touching:
            self._cell(step, cts)
            return
        if not any(ct is not None for ct in cts):
            return
        match step.value:
            case Call(Op() as op) as call:
                self._operator(step.var, call, op, cts)
            case Call(Constructor()) as call:
                reverse_construction(self, call, cts)
            case _:
                self._part(step.value, cts)

    def _cell(self, step: Step, cts: list[Expr | None]) -> None:
        """Reverse what was done to a cell on its shadow."""
        match step.value:
            case RefCreate(content):
                if self.is_varied_anywhere(content):
                    self._take_shadow(step.var, content, forget=False)
            case RefRead(ref):
                if any(ct is not None for ct in cts):
                    self._add_to_shadow(ref, type_of(step.value), cts)
            case RefWrite(ref, content):
                self._take_shadow(ref, content, forget=True)
            case _:
                raise AssertionError("calls and branches have been looked at before")

    def _add_to_shadow(self, ref: Expr, content: Type, cts: list[Expr | None]) -> None:
        """Add the cotangents of a content that was read to those in the shadow."""
        builder, span = self.builder, self.builder.span
        place, stored = self._tools.space.shadows.of(builder, self.work.run, ref)
        _, constructor = self._tools.space.shadows.boxed(content, span)
        given = [
            self.zero(leaf) if ct is None else builder.value(ct)
            for leaf, ct in zip(self.leaves.of(content), cts, strict=True)
        ]
        name = self.leaves.data(stored).constructors[constructor]
        more = builder.construct(stored.name, name, given, stored)
        before = builder.bind(RefRead(place.atom, stored, span=span), "ct")
        self._write_shadow(place, self.cotangents.add(builder, stored, before.atom, more.atom))

    def _take_shadow(self, ref: Expr, content: Expr, *, forget: bool) -> None:
        """Pass the cotangents in the shadow on to the content that was written."""
        builder, span = self.builder, self.builder.span
        place, stored = self._tools.space.shadows.of(builder, self.work.run, ref)
        if self.is_varied_anywhere(content):
            box, constructor = self._tools.space.shadows.boxed(type_of(content), span)
            callee = Constructor(box.name, constructor, span=span)
            made = Call(callee, (content,), ty=box, span=span)
            ct = builder.bind(RefRead(place.atom, stored, span=span), "ct")
            assert isinstance(ct.atom, Var)
            self.code.effects.add(ct.atom)
            reverse_construction(self, made, [ct.atom])
        if forget:
            self._write_shadow(place, self.zero(stored))

    def _write_shadow(self, place: Value, value: Value) -> None:
        done = self.builder.bind(RefWrite(place.atom, value.atom, UNIT, span=self.builder.span))
        assert isinstance(done.atom, Var)
        self.code.effects.add(done.atom)

    def _report(self, problem: Problem) -> None:
        # A loop is swept twice, and a function once for each way of using it.
        if problem not in self._tools.problems:
            self._tools.problems.append(problem)

    def _operator(self, var: Var, call: Call, op: Op, cts: list[Expr | None]) -> None:
        match op.grad:
            case NoGradient(why, is_zero):
                if not is_zero and any(map(self.is_varied_anywhere, call.args)):
                    self._report(NoDerivative(call.span, op.name, why))
            case Expansion():
                raise AssertionError("expansions have been read in place of the operator")
            case rule:
                pull_operator(self, var, call, rule, cts)

    def _part(self, expr: Expr, cts: list[Expr | None]) -> None:
        """Reverse an expression whose leaves are leaves of its operands."""
        match expr:
            case Var():
                self.contribute_all(expr, cts)
            case Tuple(fields):
                for (atom, leaf, _), ct in zip(self.places(fields), cts, strict=True):
                    if ct is not None:
                        self.contribute(atom, leaf, ct)
            case TupleGet(value, index):
                skipped = self.leaves.offset(type_of(value), index)
                for leaf, ct in enumerate(cts):
                    if ct is not None:
                        self.contribute(value, skipped + leaf, ct)
            case _:
                pass

    # Calls.

    def _call(self, step: Step, call: Call) -> Steps[None]:
        assert isinstance(call.callee, GlobalVar)
        loops = step.tail and self._ending is not Ending.ALL
        if loops and call.callee.name == self.work.source.name:
            for index, (atom, leaf, _) in enumerate(self.places(call.args)):
                if index in self.next:
                    self.contribute(atom, leaf, self.next[index])
            return
        cts = self.take(step.var)
        given = sum(1 << i for i, ct in enumerate(cts) if ct is not None)
        if not given and step not in self._touching:
            return
        if step not in self.work.calls:
            pulled = yield self._tools.pulled_call(self.work, step, given)
            self.work.calls[step] = pulled
        pulled = self.work.calls[step]
        if pulled is not None:
            self._pull_call(step, call, pulled, cts)

    def _pull_call(
        self, step: Step, call: Call, pulled: PulledCall, cts: list[Expr | None]
    ) -> None:
        instance, builder = pulled.instance, self.builder
        args = [] if pulled.residual is None else [pulled.residual]
        passed = instance.candidates if instance.open else instance.values
        args += [call.args[i] for i in passed]
        result_leaves = self.leaves.of(type_of(step.var))
        for leaf in bits(instance.useful):
            args.append(cts[leaf] or self.zero(result_leaves[leaf]).atom)
        places = list(self.places(call.args))
        taken: set[Key] = set()
        into: dict[int, Key] = {}
        for index in bits(instance.active & instance.threaded):
            atom, leaf, ty = places[index]
            key = (atom, leaf) if isinstance(atom, Var) else None
            if key is None or key in taken or not self.is_varied(atom, leaf):
                args.append(self.zero(ty).atom)
                continue
            taken.add(key)
            into[index] = key
            args.append(self.get(key) or self.zero(ty).atom)
        args += (self.work.run,) if instance.works_on_cells else ()
        active = bits(instance.active)
        types = tuple(places[i][2] for i in active)
        result = types[0] if len(types) == 1 else TupleType(types)
        callee = GlobalVar(instance.backward, span=builder.span)
        backward = Call(
            callee, tuple(args), type_args=pulled.type_args, ty=result, span=builder.span
        )
        whole = builder.bind(backward, "d")
        assert isinstance(whole.atom, Var)
        self.code.effects.update((whole.atom,) if instance.works_on_cells else ())
        if instance.open:
            self.work.open_calls[whole.atom] = pulled
        atoms = dict(zip(active, split(whole, len(active)), strict=True))
        for index, key in into.items():
            self.set(key, atoms[index])
        for index in active:
            if index not in into:
                self.contribute(places[index][0], places[index][1], atoms[index])

    # Branches.

    def _branch(self, step: Step) -> Steps[None]:
        tail = step.tail and self._ending is not Ending.ALL
        cts = self.take(step.var)
        goes_on = tail and self._ending is Ending.AGAIN
        if not any(ct is not None for ct in cts) and not goes_on and step not in self._touching:
            return
        arms = [arm for arm in step.arms if not tail or self._has_ending(arm.body)]
        if tail and len(arms) == 1:
            yield self._arm(step, arms[0], cts)
            return
        fork_arms: list[tuple[Arm, Code, dict[Key, Expr]]] = []
        outer = (self.code, self.builder)
        for arm in arms:
            code = self.code = Code()
            self.builder = Builder(outer[1].span, self.names)
            self.logs.append({})
            yield self._arm(step, arm, cts)
            fork_arms.append((arm, code, self._leave_arm()))
            code.bindings = self.builder.bindings
        self._join(step, outer, fork_arms, tail=tail)

    def _has_ending(self, body: Body) -> bool:
        again, leave = self._tools.space.graph.ends(self.work.source.name, body)
        return again if self._ending is Ending.AGAIN else leave

    def _arm(self, step: Step, arm: Arm, cts: list[Expr | None]) -> Steps[None]:
        self.contribute_all(arm.body.result, cts)
        yield self.run(arm.body)
        if arm.pattern is not None:
            assert isinstance(step.value, Match)
            matched = step.value.value
            cts_of_parts = cotangents_of_matched(self, arm.pattern, type_of(matched))
            self.contribute_all(matched, cts_of_parts)

    def _leave_arm(self) -> dict[Key, Expr]:
        """Return the cotangents that the arm has changed, and forget the changes."""
        changed: dict[Key, Expr] = {}
        for key, old in self.logs.pop().items():
            new = self.cotangents_of.get(key)
            if new is not None and new is not old:
                changed[key] = new
            if old is not None:
                self.cotangents_of[key] = old
            else:
                self.cotangents_of.pop(key, None)
        return changed

    def _join(
        self,
        step: Step,
        outer: tuple[Code, Builder],
        arms: list[tuple[Arm, Code, dict[Key, Expr]]],
        *,
        tail: bool,
    ) -> None:
        """Make the fork, whose arms give all cotangents that one of them changed."""
        keys = {key: self.leaves.of(type_of(key[0]))[key[1]] for a in arms for key in a[2]}
        for _, code, changed in arms:
            self.builder = Builder(outer[1].span, self.names)
            results: list[Expr] = []
            for key, ty in keys.items():
                atom = changed.get(key) or self.get(key)
                results.append(self.zero(ty).atom if atom is None else atom)
            code.bindings += self.builder.bindings
            code.results = tuple(results)
        self.code, self.builder = outer
        has_effects = any(code.effects for _, code, _ in arms)
        if not keys and not has_effects:
            return
        types = tuple(keys.values())
        whole = types[0] if len(types) == 1 else TupleType(types)
        var = Var(self.names.fresh("d"), whole, span=self.builder.span)
        # Only the variable counts: the code for the fork is made when all is known.
        self.builder.bindings.append(Binding(var, Tuple((), UNIT, span=self.builder.span)))
        ending = self._ending if tail else Ending.ALL
        self.code.effects.update((var,) if has_effects else ())
        fork = Fork(step, ending, var, [(arm, code) for arm, code, _ in arms], types)
        self.code.forks[var] = fork
        for key, atom in zip(keys, split(self.builder.value(var), len(keys)), strict=True):
            self.set(key, atom)
