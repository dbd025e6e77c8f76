"""Derivatives of functions that call themselves or each other.

The residual of a recursive function is a generated data type, so a call can hold the residual of
its callee. A loop is swept twice: for the paths on which it ends, and for those on which it goes
on. Its backward function reverses the end and then walks the trace, from the last iteration to the
first, in a loop of its own.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final, Protocol, final

from ...dataclass import dataclass
from ...ir.expr import Binding, Call, Expr, GlobalVar, Var, type_of
from ...ir.module import AdtDef, ConstructorDef
from ...ir.names import Names
from ...ir.traverse import Steps
from ...ir.types import AdtType, Type, as_arguments
from ..deriving.cotangents.masks import bits
from .backward import Backward
from .code import Code, Ending, Scope, Work
from .finish import kept_residuals, one_or_tuple, settle
from .forward import Forward, LoopPlan
from .instances import Instance
from .layout import ResidualLayout
from .residuals import Planner, packed_type
from .reverse import Sweep, Tools
from .saved_values import Collector, type_of_saved

if TYPE_CHECKING:
    from ..deriving.activity import MaskFlow
    from ..deriving.bodies import FunctionBody

    class GroupContext(Tools, Protocol):
        """The interface of the derivation of a group to the whole derivation."""

        def new_instance(self, name: str, varied: int, useful: int) -> Instance:
            """Return an instance that is still to be derived."""
            ...

        def touches(self, name: str) -> bool:
            """Return whether a function works on cells that a gradient flows through."""
            ...

        def run_param(self, instance: Instance) -> Var:
            """Return a new variable for the run of a backward function."""
            ...

        def cotangent_params(self, source: FunctionBody, useful: int) -> dict[int, Var]:
            """Return new variables for the cotangents of leaves of a function's result."""
            ...


@final
@dataclass(slots=True, eq=False)
class Member:
    """One function of the group while it is derived."""

    work: Work
    is_loop: bool
    given: dict[int, Var]
    """Cotangents of the result, by leaf."""
    sums: dict[int, Var] = field(default_factory=dict[int, Var])
    """Cotangents so far of threaded leaves, by leaf."""
    nexts: dict[int, Var] = field(default_factory=dict[int, Var])
    """For a loop: cotangents of all active leaves in the next iteration, by leaf."""
    types: list[Type] = field(default_factory=list[Type])
    """Of the active leaves."""
    codes: dict[Ending, Code] = field(default_factory=dict[Ending, Code])
    used: set[int] = field(default_factory=set[int])
    """The threaded parameters whose values the backward function needs."""

    @property
    def run(self) -> tuple[Var, ...]:
        """The run that shadows belong to, where the function works on any."""
        return (self.work.run,) if self.work.instance.works_on_cells else ()

    @property
    def data(self) -> AdtType | None:
        """The data type that the residual must have, so that calls can hold it."""
        residual = self.work.instance.residual
        return residual if isinstance(residual, AdtType) else None


@final
class GroupDerivation:
    """Derives one group, for one way of entering it."""

    def __init__(self, context: GroupContext) -> None:
        self._context: Final = context
        self._store: Final = context.space.store
        self._graph: Final = context.space.graph
        self.group: Final[dict[str, Instance]] = {}
        self._members: Final[list[Member]] = []

    def derive(self, name: str, varied: MaskFlow, mask: int) -> Steps[list[Instance]]:
        """Derive all functions that entering the group at `name` involves."""
        useful = yield self._context.activity.useful(name, mask)
        for member in self._graph.group(name):
            if member in varied.inward and member in useful.inward:
                yield self._enter(member, varied, useful)
        if name not in self.group:
            self.group[name] = self._context.new_instance(name, varied.inward[name], mask)
        for member in self._members:
            yield self._sweep(member)
        for member in self._members:
            yield self._collect(member)
        self._find_used()
        for member in self._members:
            yield self._define(member)
        for instance in self.group.values():
            instance.open = False
        return list(self.group.values())

    def _collect(self, member: Member) -> Steps[None]:
        # A branch may be reversed by two codes; both must be known before either is looked at.
        for code in member.codes.values():
            yield settle(code, member.work)
        threaded = self._graph.threaded(member.work.source.name)
        for code in member.codes.values():
            yield Collector(member.work, threaded).collect(code)

    def _enter(self, name: str, varied: MaskFlow, useful: MaskFlow) -> Steps[None]:
        given = useful.inward[name] & varied.outward.get(name, 0)
        instance = self._context.new_instance(name, varied.inward[name], given)
        self.group[name] = instance
        active = varied.inward[name] & useful.outward.get(name, 0)
        instance.works_on_cells = self._context.touches(name)
        if not instance.works_on_cells and not (active and given):
            return
        source = self._graph.source(name)
        instance.active, instance.open = active, True
        instance.candidates = tuple(sorted(self._graph.threaded(name)))
        instance.forward = self._store.function_name(f"{name}_fwd")
        instance.backward = self._store.function_name(f"{name}_bwd")
        own = as_arguments(source.function.type_params)
        is_loop = self._graph.is_loop(name)
        if is_loop:
            instance.trace = AdtType(self._store.data_name(f"{name}_trace"), own)
            instance.start = self._store.data_name(f"{instance.trace.name}_start")
        if self._is_held(name, is_loop=is_loop):
            instance.residual = AdtType(self._store.data_name(f"{name}_res"), own)
        masks = yield self._context.activity.varied_in(source, varied.inward[name], varied)
        used = yield self._context.activity.useful_in(source, useful.inward[name], useful)
        run = self._context.run_param(instance)
        work = Work(source, instance, masks, used, run, self.group)
        params = self._context.cotangent_params(source, given)
        member = Member(work, is_loop, params)
        self._name_leaves(member)
        self._members.append(member)

    def _is_held(self, name: str, *, is_loop: bool) -> bool:
        """Return whether a function of the group holds the residual of this one."""
        for caller in self._graph.group(name):
            for step, callee in self._graph.calls(caller):
                goes_on = is_loop and step.tail and caller == name
                if callee == name and not goes_on:
                    return True
        return False

    def _name_leaves(self, member: Member) -> None:
        """Name the cotangents of active leaves: so far, and in the next iteration of a loop."""
        instance, params = member.work.instance, member.work.source.function.params
        of = self._context.space.leaves.of
        places = [(i, p, leaf) for i, p in enumerate(params) for leaf in of(type_of(p))]
        for index, (position, param, leaf) in enumerate(places):
            if not instance.active >> index & 1:
                continue
            member.types.append(leaf)
            member.nexts[index] = Var(f"d_{param.name}", leaf, span=param.span)
            if position in instance.candidates:
                instance.threaded |= 1 << index
                member.sums[index] = Var(f"d_{param.name}", leaf, span=param.span)

    # Sweeps.

    def _sweep(self, member: Member) -> Steps[None]:
        endings = (Ending.LEAVE, Ending.AGAIN) if member.is_loop else (Ending.ALL,)
        for ending in endings:
            member.codes[ending] = yield self._sweep_for(member, ending)

    def _sweep_for(self, member: Member, ending: Ending) -> Steps[Code]:
        work = member.work
        sweep = Sweep(self._context, work, Names(), ending)
        sums = member.nexts if ending is Ending.AGAIN else member.sums
        places = list(sweep.places(work.source.function.params))
        for index in member.sums:
            param, leaf, _ = places[index]
            assert isinstance(param, Var)
            sweep.set((param, leaf), sums[index])
        if ending is Ending.AGAIN:
            sweep.next = {i: v for i, v in member.nexts.items() if i not in member.sums}
        else:
            for leaf, var in member.given.items():
                sweep.contribute(work.source.body.result, leaf, var)
        yield sweep.run(work.source.body)
        results: list[Expr] = []
        for index in bits(work.instance.active):
            param, leaf, ty = places[index]
            assert isinstance(param, Var)
            results.append(sweep.get((param, leaf)) or sweep.zero(ty).atom)
        return sweep.finished(results)

    # Values of threaded parameters.

    def _find_used(self) -> None:
        """Find which threaded parameters the backward functions need the values of."""
        by_name = {m.work.source.name: m for m in self._members}
        for member in self._members:
            params = member.work.source.function.params
            position = {params[i]: i for i in member.work.instance.candidates}
            for code in _all_codes(member):
                member.used.update(position[v] for v in code.needs.vars if v in position)
        changed = True
        while changed:
            before = sum(len(m.used) for m in self._members)
            for member in self._members:
                for caller_index, callee, callee_index in _passed(member):
                    if callee_index in by_name[callee].used:
                        member.used.add(caller_index)
            changed = sum(len(m.used) for m in self._members) != before
        for member in self._members:
            member.work.instance.values = tuple(sorted(member.used))

    # Functions.

    def _define(self, member: Member) -> Steps[None]:
        work, instance = member.work, member.work.instance
        params = work.source.function.params
        values = [params[i] for i in instance.values]
        planner = Planner(self._store, work, values)
        scopes = {ending: Scope([code]) for ending, code in member.codes.items()}
        for ending, scope in scopes.items():
            given = member.nexts if ending is Ending.AGAIN else member.given | member.sums
            data = member.data if ending is Ending.ALL else None
            yield planner.plan(scope, [type_of(v) for v in given.values()], data)
        work.kept.update(kept_residuals(work, list(scopes.values())))
        type_params = work.source.function.type_params
        ownof_backward = [*values, *member.given.values(), *member.sums.values()]
        ownof_backward += member.run
        loop = None
        if member.is_loop:
            loop = yield self._define_loop(member, scopes, values)
        ending = Ending.LEAVE if member.is_loop else Ending.ALL
        layout = self._layout(member, scopes[ending])
        instance.residual = layout.ty
        forward = Forward(work, layout, scopes[ending], loop)
        self._store.functions[instance.forward] = yield forward.make()
        backward = Backward(work, instance.backward, ownof_backward, type_params)
        self._store.functions[instance.backward] = yield backward.make(
            member.codes[ending], scopes[ending], layout, one_or_tuple(member.types)
        )

    def _layout(self, member: Member, scope: Scope) -> ResidualLayout:
        packed = packed_type(member.work, scope.saved)
        data = member.data
        if data is None or packed == data:
            return ResidualLayout(packed, None)
        constructor = self._store.data_name(f"{data.name}_path")
        function = member.work.source.function
        fields = tuple(type_of_saved(member.work, v) for v in scope.saved)
        self._store.adts[data.name] = AdtDef(
            data.name,
            function.type_params,
            (ConstructorDef(constructor, fields),),
            function.span.derived("what the gradient saves"),
        )
        return ResidualLayout(data, constructor)

    def _define_loop(
        self, member: Member, scopes: dict[Ending, Scope], values: list[Var]
    ) -> Steps[LoopPlan]:
        """Define the trace and the function that walks it, and let the code for the end of the
        loop call it."""
        work, instance = member.work, member.work.instance
        function, trace = work.source.function, instance.trace
        assert trace is not None
        again = self._store.data_name(f"{trace.name}_again")
        saved = scopes[Ending.AGAIN].saved
        fields = (*(type_of_saved(work, v) for v in saved), trace)
        self._store.adts[trace.name] = AdtDef(
            trace.name,
            function.type_params,
            (ConstructorDef(instance.start, ()), ConstructorDef(again, fields)),
            function.span.derived("what the gradient saves"),
        )
        name = self._store.function_name(f"{instance.backward}_loop")
        passed = [*values, *member.run]
        walk = Backward(work, name, [*passed, *member.nexts.values()], function.type_params)
        result = one_or_tuple(member.types)
        code, names = member.codes[Ending.AGAIN], (instance.start, again)
        self._store.functions[name] = yield walk.make_loop(
            code, scopes[Ending.AGAIN], trace, names, result
        )
        earlier = Var("trace", trace, span=function.span)
        leave = member.codes[Ending.LEAVE]
        call = Call(
            GlobalVar(name, span=walk.span),
            (earlier, *passed, *leave.results),
            type_args=as_arguments(function.type_params),
            ty=result,
            span=walk.span,
        )
        var = Var("d", result, span=walk.span)
        leave.bindings.append(Binding(var, call))
        leave.effects.update((var,) if instance.works_on_cells else ())
        leave.results = (var,)
        scopes[Ending.LEAVE].saved.append(earlier)
        return LoopPlan(trace, again, earlier, scopes)


def _all_codes(member: Member) -> list[Code]:
    found = list(member.codes.values())
    for code in found:
        found += (inside for fork in code.forks.values() for _, inside in fork.arms)
    return found


def _passed(member: Member) -> list[tuple[int, str, int]]:
    """Return which threaded parameters are passed on to which of functions in the group."""
    params = member.work.source.function.params
    found: list[tuple[int, str, int]] = []
    for step, pulled in member.work.calls.items():
        if pulled is None or not pulled.instance.open:
            continue
        assert isinstance(step.value, Call)
        for index in pulled.instance.candidates:
            arg = step.value.args[index]
            assert isinstance(arg, Var)
            found.append((params.index(arg), pulled.instance.source, index))
    return found
