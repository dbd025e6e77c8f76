"""Transforms that are composed of others, and their components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias, final

from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.expr import (
    Binding,
    Call,
    Differentiation,
    Expr,
    Function,
    Rule,
    Transform,
    TupleGet,
    Var,
    function_type,
    type_of,
)
from ...ir.traverse import free_vars
from ...ir.types import FnType, TupleType, Type
from ...operators.builder import Builder, Value

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ..deriving.store import Store


@final
@dataclass(frozen=True, slots=True, eq=False)
class TransformParts:
    """A transform taken apart: its function, what that captures, and its own parameters."""

    transform: Transform
    captured: tuple[Type, ...]
    own: tuple[Type, ...]
    value: Type
    wanted: tuple[Type, ...]
    options: Differentiation
    store: Store

    @classmethod
    def of(cls, transform: Transform, store: Store) -> TransformParts:
        """Take a typed transform apart."""
        ty = function_type(transform.function)
        options = transform.options
        assert isinstance(options, Differentiation)
        own = ty.params[transform.captures :]
        wanted = tuple(own[i] for i in options.indices)
        captured = ty.params[: transform.captures]
        return cls(transform, captured, own, ty.result, wanted, options, store)

    @property
    def span(self) -> Span:
        """The place of the transform."""
        return self.transform.span

    def made(self, rule: Rule, function: Expr, params: Sequence[Type], result: Type) -> Binding:
        """Return the transform by another rule of the function, or of what was made of it."""
        ty = FnType((*self.captured, *params), result)
        options = self.options if rule is Rule.GRAD else replace(self.options, single=False)
        new = replace(self.transform, rule=rule, function=function, options=options, ty=ty)
        return Binding(Var(rule.value, ty, span=self.span), new)

    def variables(self, builder: Builder, types: Sequence[Type]) -> list[Var]:
        """Return new parameters for captures, and for values of these types."""
        every = (*self.captured, *types)
        return [Var(builder.names.fresh("x"), ty, span=self.span) for ty in every]

    def function(self, builder: Builder, params: Sequence[Var], result: Value) -> Function:
        """Return the function that the transform stands for."""
        ty = FnType(tuple(type_of(p) for p in params), result.ty)
        code = BlockBuilder()
        for is_function, run in groupby(builder.bindings, lambda b: isinstance(b.value, Function)):
            bindings = list(run)
            made = {b.var for b in bindings}
            if is_function and any(made & {*free_vars(b.value)} for b in bindings):
                code.bind_rec(bindings)  # they call each other
                continue
            for binding in bindings:
                code.bind(binding.var, binding.value)
        body = code.close(result.atom)
        name = self.transform.rule.value
        return Function(tuple(params), body, result.ty, (), name, ty=ty, span=self.span)

    def pullback(self, builder: Builder, params: Sequence[Var]) -> tuple[Binding, Value, Value]:
        """Return the vjp of the function, and code for its value and its pullback."""
        pull_type = FnType((self.value,), TupleType(self.wanted))
        pair = TupleType((self.value, pull_type))
        vjp = self.made(Rule.VJP, self.transform.function, self.own, pair)
        whole = builder.bind(Call(vjp.var, tuple(params), ty=pair, span=self.span))
        value = builder.bind(TupleGet(whole.atom, 0, self.value, span=self.span), "value")
        return vjp, value, builder.bind(TupleGet(whole.atom, 1, pull_type, span=self.span), "pull")

    def gradient(self) -> Binding:
        """Return the gradient of the function."""
        result = self.wanted[0] if self.options.single else TupleType(self.wanted)
        return self.made(Rule.GRAD, self.transform.function, self.own, result)


Made: TypeAlias = tuple[Sequence[Binding], Function]
"""The transforms that a function mentions, and the function."""
