"""Forward functions: copies of the original that also give what the backward function needs.

A call that is differentiated becomes a call of the callee's forward function; a branch that saves
something gives it beside its value. In a loop each iteration conses what it saves onto the trace,
a list that the forward function takes as its last argument, so that a tail call stays one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, final

from ...dataclass import dataclass
from ...ir.expr import (
    Binding,
    Call,
    Clause,
    Expr,
    Function,
    GlobalVar,
    If,
    Match,
    TupleGet,
    Var,
    type_of,
)
from ...ir.names import Names
from ...ir.traverse import Steps, let
from ...ir.types import AdtType, FnType, TupleType, Type, as_arguments
from ...operators.builder import Builder, Value
from ..deriving.bodies import Arm, Body, Step, callee_name
from ..deriving.copying import Copier
from .code import Branching, Ending, Scope, Work
from .layout import ResidualLayout
from .saved_values import type_of_saved


@final
@dataclass(frozen=True, slots=True)
class LoopPlan:
    """The products of the forward function of a loop: the trace, and the residual at its end."""

    trace: AdtType
    again: str
    """The constructor of the trace for one iteration: what it saves, then the earlier trace."""
    earlier: Var
    """Stands for the trace among what is saved at the end."""
    scopes: dict[Ending, Scope]


@final
class Forward:
    """Makes the forward function of one function."""

    def __init__(
        self, work: Work, layout: ResidualLayout, scope: Scope, loop: LoopPlan | None
    ) -> None:
        self._work: Final = work
        self._layout: Final = layout
        self._scope: Final = scope
        self._loop: Final = loop
        self._names: Final = Names()
        self._copier: Final = Copier(self._names)
        self._trace: Var | None = None

    def make(self) -> Steps[Function]:
        """Return the forward function."""
        source, function = self._work.source, self._work.source.function
        params = [self._copier.fresh(p) for p in function.params]
        value_type = type_of(source.body.result)
        result = TupleType((value_type, self._layout.ty))
        if self._loop is None:
            body = yield self._saving(source.body, self._scope, self._layout)
        else:
            span = function.span
            self._trace = Var(self._names.fresh("trace"), self._loop.trace, span=span)
            params.append(self._trace)
            body = yield self._tail(source.body, [])
        types = tuple(type_of(p) for p in params)
        return Function(
            tuple(params),
            body,
            result,
            function.type_params,
            self._work.instance.forward,
            function.assumptions,
            ty=FnType(types, result, function.type_params),
            span=function.span.derived(f"forward pass of {source.name}"),
        )

    def _saving(self, body: Body, scope: Scope, layout: ResidualLayout) -> Steps[Expr]:
        """Return a body whose value is a pair: its own, and what it saves."""
        builder = Builder(body.result.span, self._names)
        yield self._steps(body.steps, builder)
        residual = layout.pack(builder, self._values(scope, builder, {}))
        result = builder.value(self._copier.atom(body.result))
        return builder.block(builder.tuple((result, residual)))

    def _values(self, scope: Scope, builder: Builder, made: dict[Var, Value]) -> list[Value]:
        found: list[Value] = []
        for var in scope.saved:
            if var in made:
                found.append(made[var])
            elif self._loop is not None and var is self._loop.earlier:
                assert self._trace is not None
                found.append(builder.value(self._trace))
            elif var in self._work.sizes:
                found.append(builder.size(self._work.sizes[var]))
            else:
                found.append(builder.value(self._copier.atom(var)))
        return found

    # Steps.

    def _steps(self, steps: tuple[Step, ...], builder: Builder) -> Steps[None]:
        for step in steps:
            builder.span = step.value.span
            if step in self._work.expanded:
                yield self._steps(step.expansion, builder)
                if not step.is_opaque:
                    continue
            branching = self._work.branchings.get((step, Ending.ALL))
            if branching is not None and not branching.by_condition:
                yield self._branch(step, branching, builder)
                continue
            pulled = self._work.calls.get(step)
            if pulled is not None and pulled.residual in self._work.kept:
                self._call(step, builder)
                continue
            value = yield self._copier.copy(step.value)
            builder.bindings.append(Binding(self._copier.fresh(step.var), value))

    def _call(self, step: Step, builder: Builder) -> None:
        pulled = self._work.calls[step]
        assert pulled is not None
        assert pulled.residual is not None
        assert isinstance(step.value, Call)
        instance = pulled.instance
        residual_type = type_of_saved(self._work, pulled.residual)
        args = [builder.value(self._copier.atom(a)) for a in step.value.args]
        if pulled.trace is not None:
            args.append(builder.construct(pulled.trace.name, instance.start, (), pulled.trace))
        both = TupleType((type_of(step.var), residual_type))
        whole = builder.apply(instance.forward, args, both, pulled.type_args)
        self._pair(step.var, pulled.residual, residual_type, whole, builder)

    def _pair(
        self, var: Var, residual: Var, residual_type: Type, whole: Value, builder: Builder
    ) -> None:
        value = TupleGet(whole.atom, 0, type_of(var), span=builder.span)
        saved = TupleGet(whole.atom, 1, residual_type, span=builder.span)
        builder.bindings.append(Binding(self._copier.fresh(var), value))
        builder.bindings.append(Binding(self._copier.fresh(residual, residual_type), saved))

    def _branch(self, step: Step, branching: Branching, builder: Builder) -> Steps[None]:
        residual_type = type_of_saved(self._work, branching.var)
        arms: list[Expr] = []
        patterns: list[Clause] = []
        ty = TupleType((type_of(step.var), residual_type))
        for arm in step.arms:
            clause = None if arm.pattern is None else (yield self._clause(arm))
            scope = branching.scopes[arm]
            layout = ResidualLayout(residual_type, branching.constructors.get(arm))
            body = yield self._saving(arm.body, scope, layout)
            arms.append(body)
            if clause is not None:
                patterns.append(replace(clause, body=body))
        whole = builder.bind(self._rebuilt(step, arms, patterns, ty), "both")
        self._pair(step.var, branching.var, residual_type, whole, builder)

    def _clause(self, arm: Arm) -> Steps[Clause]:
        assert arm.pattern is not None
        pattern = self._copier.pattern(arm.pattern)
        guard = None if arm.guard is None else (yield self._copier.copy(arm.guard))
        return Clause(pattern, arm.body.result, guard)

    def _rebuilt(self, step: Step, arms: list[Expr], clauses: list[Clause], ty: Type) -> Expr:
        match step.value:
            case If(condition) as branch:
                atom = self._copier.atom(condition)
                return replace(branch, condition=atom, then=arms[0], otherwise=arms[1], ty=ty)
            case Match(value) as branch:
                atom = self._copier.atom(value)
                return replace(branch, value=atom, clauses=tuple(clauses), ty=ty)
            case _:
                raise AssertionError("only branches have arms")

    # Loops.

    def _tail(self, body: Body, path: list[tuple[Step, Arm]]) -> Steps[Expr]:
        """Return a body in tail position: it goes on with a longer trace, or leaves with it."""
        builder = Builder(body.result.span, self._names)
        last = body.steps[-1] if body.steps and body.steps[-1].tail else None
        if last is not None and last.arms:
            yield self._steps(body.steps[:-1], builder)
            builder.span = last.value.span
            branch = yield self._tail_branch(last, path)
            return let(builder.bindings, branch)
        if last is not None and callee_name(last.value) == self._work.source.name:
            yield self._steps(body.steps[:-1], builder)
            builder.span = last.value.span
            call = self._again(last, path, builder)
            return let(builder.bindings, call)
        yield self._steps(body.steps, builder)
        assert self._loop is not None
        scope = self._loop.scopes[Ending.LEAVE]
        saved = self._path_values(Ending.LEAVE, scope, path, builder)
        residual = self._layout.pack(builder, saved)
        result = builder.value(self._copier.atom(body.result))
        return builder.block(builder.tuple((result, residual)))

    def _tail_branch(self, step: Step, path: list[tuple[Step, Arm]]) -> Steps[Expr]:
        arms: list[Expr] = []
        clauses: list[Clause] = []
        for arm in step.arms:
            clause = None if arm.pattern is None else (yield self._clause(arm))
            path.append((step, arm))
            body = yield self._tail(arm.body, path)
            path.pop()
            arms.append(body)
            if clause is not None:
                clauses.append(replace(clause, body=body))
        ty = TupleType((type_of(step.var), self._layout.ty))
        return self._rebuilt(step, arms, clauses, ty)

    def _again(self, step: Step, path: list[tuple[Step, Arm]], builder: Builder) -> Expr:
        assert self._loop is not None
        assert self._trace is not None
        assert isinstance(step.value, Call)
        scope = self._loop.scopes[Ending.AGAIN]
        saved = self._path_values(Ending.AGAIN, scope, path, builder)
        trace = self._loop.trace
        longer = builder.construct(
            trace.name, self._loop.again, [*saved, builder.value(self._trace)], trace
        )
        function = self._work.source.function
        args = (*(self._copier.atom(a) for a in step.value.args), longer.atom)
        return Call(
            GlobalVar(self._work.instance.forward, span=builder.span),
            args,
            type_args=step.value.type_args or as_arguments(function.type_params),
            ty=TupleType((type_of(step.var), self._layout.ty)),
            span=builder.span,
        )

    def _path_values(
        self, ending: Ending, scope: Scope, path: list[tuple[Step, Arm]], builder: Builder
    ) -> list[Value]:
        """Return the values that the scope of the whole body saves; those of the arms on the path
        are put together from the inside out."""
        made: dict[Var, Value] = {}
        for step, arm in reversed(path):
            branching = self._work.branchings.get((step, ending))
            if branching is None or arm not in branching.scopes:
                continue
            residual_type = type_of_saved(self._work, branching.var)
            layout = ResidualLayout(residual_type, branching.constructors.get(arm))
            values = self._values(branching.scopes[arm], builder, made)
            made = {branching.var: layout.pack(builder, values)}
        return self._values(scope, builder, made)
