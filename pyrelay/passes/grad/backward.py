"""Backward functions: the code of a sweep, with what it mentions taken out of the residual."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from ...ir.expr import Binding, Call, Clause, Expr, Function, GlobalVar, If, Match, Tuple, Var
from ...ir.names import Names
from ...ir.traverse import Steps, let
from ...ir.types import AdtType, TupleType, Type, TypeParam, as_arguments
from ...operators.builder import Builder
from ..deriving.copying import Copier
from ..deriving.store import function_like
from .layout import ResidualLayout
from .saved_values import type_of_saved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...diagnostics.source import Span
    from .code import Branching, Code, Fork, Scope, Work


@final
class Backward:
    """Makes one function of one piece of code."""

    def __init__(
        self, work: Work, name: str, params: Sequence[Var], type_params: tuple[TypeParam, ...]
    ) -> None:
        self._work: Final = work
        self._name: Final = name
        self._names: Final = Names()
        self._copier: Final = Copier(self._names)
        self._old_params: Final = params
        self._type_params: Final = type_params
        self.span: Span = work.source.function.span.derived(f"gradient of {work.source.name}")

    def make(
        self, code: Code, scope: Scope, layout: ResidualLayout | None, result: Type
    ) -> Steps[Function]:
        """Return the function whose first parameter is the residual, if there is one."""
        builder = Builder(self.span, self._names)
        residual = None
        if layout is not None:
            residual = Var(self._names.fresh("saved"), layout.ty, span=self.span)
        params = tuple(self._copier.fresh(p) for p in self._old_params)
        saved = scope.saved
        if residual is not None and layout is not None and layout.constructor is None:
            layout.unpack(builder, builder.value(residual), saved, self._copier)
        if residual is None or layout is None or layout.constructor is None:
            yield self._code(code, builder)
            body = self._finish(code, builder)
        else:
            types = [type_of_saved(self._work, v) for v in saved]
            pattern = layout.pattern(saved, types, self._copier, self.span)
            yield self._code(code, builder)
            inside = self._finish(code, builder)
            body = Match(residual, (Clause(pattern, inside),), ty=result, span=self.span)
        every = params if residual is None else (residual, *params)
        return self._function(every, body)

    def make_loop(
        self, code: Code, scope: Scope, trace: AdtType, names: tuple[str, str], result: Type
    ) -> Steps[Function]:
        """Return the function that walks a trace: `names` are its constructors, for the start and
        for an iteration. The code's results go into the call for the iteration before."""
        walked = Var(self._names.fresh("trace"), trace, span=self.span)
        params = tuple(self._copier.fresh(p) for p in self._old_params)
        start, again = names
        earlier = Var("trace", trace, span=self.span)
        types = [*(type_of_saved(self._work, v) for v in scope.saved), trace]
        ended = ResidualLayout(trace, start).pattern((), (), self._copier, self.span)
        pattern = ResidualLayout(trace, again).pattern(
            [*scope.saved, earlier], types, self._copier, self.span
        )
        builder = Builder(self.span, self._names)
        yield self._code(code, builder)
        results = [self._copier.atom(r) for r in code.results]
        kept = params[: len(params) - len(results)]
        call = Call(
            GlobalVar(self._name, span=self.span),
            (self._copier.env[earlier], *kept, *results),
            type_args=as_arguments(self._type_params),
            ty=result,
            span=self.span,
        )
        done = Builder(self.span, self._names)
        final_values = [done.value(p) for p in params[len(params) - len(results) :]]
        final_value = final_values[0] if len(results) == 1 else done.tuple(final_values)
        clauses = (
            Clause(ended, done.block(final_value)),
            Clause(pattern, let(builder.bindings, call)),
        )
        body = Match(walked, clauses, ty=result, span=self.span)
        return self._function((walked, *params), body)

    def _function(self, params: tuple[Var, ...], body: Expr) -> Function:
        source = self._work.source.function
        return function_like(source, self._name, params, body, self.span, self._type_params)

    def _finish(self, code: Code, builder: Builder) -> Expr:
        results = [builder.value(self._copier.atom(r)) for r in code.results]
        if len(results) == 1:
            return builder.block(results[0])
        return builder.block(builder.tuple(results))

    def _code(self, code: Code, builder: Builder) -> Steps[None]:
        for step in code.recomputed:
            value = yield self._copier.copy(step.value)
            builder.bindings.append(Binding(self._copier.fresh(step.var), value))
        for binding in code.bindings:
            fork = code.forks.get(binding.var)
            if fork is None:
                value = yield self._copier.copy(self._settled(binding))
            elif self._is_forced(fork):
                value = yield self._forced(fork, builder)
            else:
                value = yield self._fork(fork)
            builder.bindings.append(Binding(self._copier.fresh(binding.var), value))

    def _settled(self, binding: Binding) -> Expr:
        """Return a backward call with the values that its callee turned out to take."""
        pulled = self._work.open_calls.get(binding.var)
        if pulled is None:
            return binding.value
        assert isinstance(binding.value, Call)
        residual, *rest = binding.value.args
        candidates = pulled.instance.candidates
        values = dict(zip(candidates, rest, strict=False))
        passed = (values[i] for i in pulled.instance.values)
        return replace(binding.value, args=(residual, *passed, *rest[len(candidates) :]))

    def _fork(self, fork: Fork) -> Steps[Expr]:
        branching = self._branching(fork)
        ty = fork.types[0] if len(fork.types) == 1 else TupleType(fork.types)
        span = fork.step.value.span.derived(f"gradient of {self._work.source.name}")
        if branching.by_condition:
            assert isinstance(fork.step.value, If)
            condition = self._copier.atom(fork.step.value.condition)
            arms: list[Expr] = []
            for _, code in fork.arms:
                arms.append((yield self._arm(code, span)))
            return If(condition, arms[0], arms[1], ty=ty, span=span)
        residual_type = type_of_saved(self._work, branching.var)
        clauses: list[Clause] = []
        for arm, code in fork.arms:
            saved = branching.scopes[arm].saved
            types = [type_of_saved(self._work, v) for v in saved]
            before = self._stand_ins(saved)
            layout = ResidualLayout(residual_type, branching.constructors[arm])
            pattern = layout.pattern(saved, types, self._copier, span)
            clauses.append(Clause(pattern, (yield self._arm(code, span))))
            self._copier.env.update(before)
        residual = self._copier.atom(branching.var)
        return Match(residual, tuple(clauses), ty=ty, span=span)

    def _arm(self, code: Code, span: Span) -> Steps[Expr]:
        builder = Builder(span, self._names)
        before = self._stand_ins([s.var for s in code.recomputed])
        yield self._code(code, builder)
        body = self._finish(code, builder)
        self._copier.env.update(before)
        return body

    def _stand_ins(self, variables: Sequence[Var]) -> dict[Var, Expr]:
        """Return the replacements of variables that an arm may bind again for itself."""
        env = self._copier.env
        return {v: env[v] for v in variables if v in env}

    def _is_forced(self, fork: Fork) -> bool:
        """Return whether there is only one arm, so that its code can stand where the fork does."""
        branching = self._branching(fork)
        return not branching.by_condition and not branching.constructors

    def _forced(self, fork: Fork, builder: Builder) -> Steps[Expr]:
        branching = self._branching(fork)
        ((arm, code),) = fork.arms
        residual = builder.value(self._copier.atom(branching.var))
        layout = ResidualLayout(type_of_saved(self._work, branching.var), None)
        layout.unpack(builder, residual, branching.scopes[arm].saved, self._copier)
        yield self._code(code, builder)
        results = tuple(self._copier.atom(r) for r in code.results)
        if len(results) == 1:
            return results[0]
        return Tuple(results, TupleType(fork.types), span=builder.span)

    def _branching(self, fork: Fork) -> Branching:
        return self._work.branchings[fork.step, fork.ending]
