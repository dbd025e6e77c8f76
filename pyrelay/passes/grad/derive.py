"""Derivatives of first-order functions: a forward and a backward function for each.

An instance is asked for by name and by which leaves of the parameters are varied and which leaves
of the result have a cotangent; each is derived once. Recursive functions are derived group by
group: the masks of all members are known before any is swept, so a member can call the others'
functions before these exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...ir.dims import Dim, DimVar
from ...ir.expr import Call, Expr, GlobalVar, Rule, Transform, Var, type_of
from ...ir.names import Names
from ...ir.traverse import Steps
from ...ir.types import UNIT, AdtType, RefType, Substitution, Type, dim_names
from ..deriving.activity import Activity, MaskFlow, active_cells
from ..deriving.cotangents.cells import Cells
from ..deriving.cotangents.masks import bits, join_masks, ones
from ..deriving.instantiation import call_instance, match_types, type_arguments
from ..deriving.ruled import rule_of
from ..deriving.tangent_rules import captured_is_varied, pushed
from .backward import Backward
from .code import Ending, PulledCall, Scope, Work
from .finish import kept_residuals, one_or_tuple, settle
from .forward import Forward
from .instances import Instance
from .layout import ResidualLayout
from .recomputation import Recomputation, obstacle
from .recursion import GroupDerivation
from .residuals import Planner, packed_type
from .reverse import Sweep
from .saved_values import Collector
from .user_rules import RuledDerivation, completed, transposed_rule

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from ..deriving.bodies import FunctionBody, Step
    from ..deriving.workspace import Workspace


@final
class Derivation:
    """Derives instances into a store."""

    def __init__(self, space: Workspace) -> None:
        self.space: Final = space
        self.problems: Final[list[Problem]] = []
        """The obstacles, collected while everything else is derived."""
        self._known: Final[dict[Cells, _Derivation]] = {}

    def instance(self, name: str, varied: int, useful: int) -> Steps[Instance]:
        """Return the instance of a function for masks of its parameters and of its result, a
        gradient flowing through those cells that matter to it."""
        cells = yield active_cells(self.space, name, varied, useful)
        if cells not in self._known:
            self._known[cells] = _Derivation(self, cells)
        return (yield self._known[cells].instance(name, varied, useful))


@final
class _Derivation:
    """Derives instances for one choice of active cells."""

    def __init__(self, shared: Derivation, cells: Cells) -> None:
        self._shared: Final = shared
        self.space: Final = shared.space
        self.problems: Final = shared.problems
        self.cells: Final = cells
        self.activity: Final = Activity(self.space, cells, cells)
        self._instances: Final[dict[tuple[str, int, int], Instance]] = {}

    def instance(self, name: str, varied: int, useful: int) -> Steps[Instance]:
        """Return the instance of a function for masks of its parameters and of its result."""
        flow = yield self.activity.varied(name, varied)
        useful &= flow.outward.get(name, 0)
        key = (name, varied, useful)
        if key in self._instances:
            return self._instances[key]
        if self.space.graph.group(name):
            derivation = GroupDerivation(self)
            for member in (yield derivation.derive(name, flow, useful)):
                found = (member.source, member.varied, member.useful)
                self._instances.setdefault(found, member)
            return self._instances.setdefault(key, derivation.group[name])
        if rule_of(self.space.store.functions[name]) is not None:
            instance = yield self._ruled(name, varied, useful)
        else:
            instance = yield self._plain(name, varied, useful, flow)
        self._instances[key] = instance
        return instance

    def _ruled(self, name: str, varied: int, useful: int) -> Steps[Instance]:
        """Return the instance of a function with a derivative of its own."""
        instance = self.new_instance(name, varied, useful)
        rule = rule_of(self.space.store.functions[name])
        assert rule is not None
        if rule.rule is Rule.CHECKPOINT:
            found = yield self._checkpointed(instance, rule)
        elif rule.rule is Rule.CUSTOM_JVP:
            found = yield self._transposed(instance)
        else:
            found = RuledDerivation(self.space, instance, self._whole(instance, rule)).derive()
        self.problems.extend(p for p in found if p not in self.problems)
        return instance

    def _whole(self, instance: Instance, rule: Transform) -> Transform:
        """Return a rule with its functions, which those of mapped functions are given here."""
        if instance.source not in self.space.mapped:
            return rule
        params = self.space.store.functions[instance.source].params
        places = [i for i, p in enumerate(params) for _ in self.space.leaves.of(type_of(p))]
        varied = tuple(dict.fromkeys(places[leaf] for leaf in bits(instance.varied)))
        return completed(self.space, instance.source, rule, varied)

    def _transposed(self, instance: Instance) -> Steps[tuple[Problem, ...]]:
        """Fill in the instance of a function with a rule for forward mode; return the mistakes."""
        store, function = self.space.store, self.space.store.functions[instance.source]
        problem = captured_is_varied(self.space, function, instance.varied)
        if problem is not None:
            return (problem,)
        if not instance.varied or not instance.useful:
            return ()
        name = store.function_name(f"{instance.source}_pushed")
        made = pushed(self.space, function, instance.varied, instance.useful, name)
        store.functions[name] = made
        first, tangents = (
            sum(self.space.leaves.width(type_of(p)) for p in function.params),
            len(bits(instance.varied)),
        )
        value = self.space.leaves.width(
            type_of(self.space.graph.source(instance.source).body.result)
        )
        useful = ones(len(bits(instance.useful))) << value
        inner = yield self._shared.instance(name, ones(tangents) << first, useful)
        transposed_rule(self.space, instance, inner)
        return ()

    def _checkpointed(self, instance: Instance, rule: Transform) -> Steps[tuple[Problem, ...]]:
        """Fill in the instance of a function under a checkpoint; return the mistakes."""
        problem = obstacle(self.space.store, instance.source, rule)
        if problem is not None:
            return (problem,)
        assert isinstance(rule.function, GlobalVar)
        inner = yield self._shared.instance(rule.function.name, instance.varied, instance.useful)
        pair = (instance, inner)
        Recomputation(self.space, rule, pair).derive()
        return ()

    def new_instance(self, name: str, varied: int, useful: int) -> Instance:
        """Return an instance that is still to be derived."""
        source = self.space.graph.source(name)
        extra: dict[str, None] = {}
        known = {p.name for p in source.function.type_params}
        leaves = self.result_leaves(source)
        for leaf in bits(useful):
            extra.update(dict.fromkeys(sorted(dim_names(leaves[leaf]) - known)))
        instance = Instance(name, varied, useful, forward=name, backward="")
        instance.extra = tuple(DimVar(n) for n in extra)
        return instance

    def result_leaves(self, source: FunctionBody) -> tuple[Type, ...]:
        """Return the leaves of a function's result."""
        return self.space.leaves.of(type_of(source.body.result))

    def touches(self, name: str) -> bool:
        """Return whether a function works on cells that a gradient flows through."""
        return not self.cells.isdisjoint(self.space.cell_use.of(name))

    def run_param(self, instance: Instance) -> Var:
        """Return a new variable for the run of a backward function, which shadows belong to."""
        span = self.space.graph.source(instance.source).function.span
        return Var("run", RefType(UNIT), span=span)

    def cotangent_params(self, source: FunctionBody, useful: int) -> dict[int, Var]:
        """Return new variables for the cotangents of leaves of a function's result."""
        leaves = self.result_leaves(source)
        span = source.function.span
        return {i: Var("g", leaves[i], span=span) for i in bits(useful)}

    def _plain(self, name: str, varied: int, useful: int, flow: MaskFlow) -> Steps[Instance]:
        """Derive a function that is not recursive."""
        source = self.space.graph.source(name)
        instance = self.new_instance(name, varied, useful)
        run = self.run_param(instance)
        masks = yield self.activity.varied_in(source, varied, flow)
        work = Work(source, instance, masks, None, run)
        sweep = Sweep(self, work, Names(), Ending.ALL)
        given = self.cotangent_params(source, useful)
        for leaf, var in given.items():
            sweep.contribute(source.body.result, leaf, var)
        yield sweep.run(source.body)
        results: list[Expr] = []
        types: list[Type] = []
        for index, (param, leaf, ty) in enumerate(sweep.places(source.function.params)):
            assert isinstance(param, Var)
            atom = sweep.get((param, leaf))
            if atom is not None:
                instance.active |= 1 << index
                results.append(atom)
                types.append(ty)
        code = sweep.finished(results)
        instance.works_on_cells = bool(code.effects)
        if not results and not instance.works_on_cells:
            return instance
        instance.backward = self.space.store.function_name(f"{name}_bwd")
        yield settle(code, work)
        yield Collector(work, frozenset()).collect(code)
        scope = Scope([code])
        planner = Planner(self.space.store, work, ())
        yield planner.plan(scope, [type_of(v) for v in given.values()])
        layout = None
        if scope.saved:
            layout = ResidualLayout(packed_type(work, scope.saved), None)
            instance.residual = layout.ty
            instance.forward = self.space.store.function_name(f"{name}_fwd")
            work.kept.update(kept_residuals(work, [scope]))
            forward = yield Forward(work, layout, scope, None).make()
            self.space.store.functions[instance.forward] = forward
        type_params = source.function.type_params
        params = [*given.values(), *((run,) if instance.works_on_cells else ())]
        backward = Backward(work, instance.backward, params, type_params)
        self.space.store.functions[instance.backward] = yield backward.make(
            code, scope, layout, one_or_tuple(types)
        )
        return instance

    def pulled_call(self, work: Work, step: Step, given: int) -> Steps[PulledCall | None]:
        """Return how a call is differentiated, `given` leaves of its result having a cotangent;
        None if its result does not depend on anything of interest."""
        call = step.value
        assert isinstance(call, Call)
        assert isinstance(call.callee, GlobalVar)
        name = call.callee.name
        varied = join_masks(self.space.leaves, call.args, work.varied)
        instance = work.group.get(name)
        if instance is None and (varied or self.touches(name)):
            if work.useful is not None:
                given = work.useful.get(step.var, 0) & work.varied.get(step.var, 0)
            instance = yield self.instance(name, varied, given)
        if instance is None or not (instance.active or instance.works_on_cells):
            return None
        return self._called(work, step, call, instance)

    def _called(self, work: Work, step: Step, call: Call, instance: Instance) -> PulledCall:
        function = self.space.store.functions[instance.source]
        types = call_instance(function, call)
        type_args = type_arguments(function.type_params, types)
        result = self.space.graph.source(instance.source).body.result
        extra = match_types(instance.extra, [type_of(result)], [type_of(step.var)])
        residual = None
        if instance.residual is not None:
            residual = Var(f"{step.var.name}_saved", span=step.var.span)
            inside = Substitution(types.dims | extra.dims, types.types)
            work.residuals[residual] = step
            work.types[residual] = self._opened(instance.residual, inside, work)
        trace = None if instance.trace is None else types(instance.trace)
        assert trace is None or isinstance(trace, AdtType)
        return PulledCall(instance, type_args, residual, trace)

    def _opened(self, ty: Type, types: Substitution, work: Work) -> Type:
        """Return a residual's type at a call; sizes that only the callee knows get new names."""
        hidden = sorted(dim_names(ty) - types.dims.keys())
        fresh = {n: Dim.of(work.source.sizes.fresh(n)) for n in hidden}
        return Substitution(types.dims | fresh, types.types)(ty)
