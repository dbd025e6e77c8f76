"""The module that grows while gradients are derived, and the names that are still free in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...analysis.call_graph import CallGraph, reachable
from ...ir.expr import Expr, Function, Var, function_type, type_of
from ...ir.names import Names
from ...ir.types import FnType, Type, TypeParam
from .instantiation import match_types, type_arguments
from .ruled import opaque

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...diagnostics.source import Span
    from ...ir.module import AdtDef, Module
    from ...operators.builder import Builder, Value
    from ..base import Opaque


@final
class Store:
    """Functions and data types by name; derived ones are added, none is ever replaced. Calls of
    operators that are `opaque` stay in the forward functions."""

    def __init__(self, module: Module, opaque: Opaque) -> None:
        self.opaque: Final = opaque
        self.functions: Final[dict[str, Function]] = dict(module.functions)
        self.adts: Final[dict[str, AdtDef]] = dict(module.adts)
        self._globals: Final = Names(self.functions)
        self._data: Final = Names()
        for adt in self.adts.values():
            self._reserve(adt)

    def add(self, functions: Mapping[str, Function], adts: Mapping[str, AdtDef]) -> None:
        """Take over what another pass has made of the module so far."""
        for name, function in functions.items():
            if name not in self.functions:
                self._globals.fresh(name)
            self.functions[name] = function
        for name, adt in adts.items():
            if name not in self.adts:
                self._reserve(adt)
            self.adts[name] = adt

    def _reserve(self, adt: AdtDef) -> None:
        self._data.fresh(adt.name)
        for constructor in adt.constructors:
            self._data.fresh(constructor.name)

    def graph(self, name: str) -> CallGraph:
        """Return the call graph of the functions that one reaches; a ruled one calls nothing in
        it."""
        reached = reachable(self.functions, (name,))
        return CallGraph({n: opaque(self.functions[n]) for n in reached})

    def function_name(self, hint: str) -> str:
        """Return a name for a new function."""
        return self._globals.fresh(hint)

    def define(
        self, hint: str, source: Function, params: tuple[Var, ...], body: Expr, span: Span
    ) -> str:
        """Define a function that has the type parameters and assumptions of another; return its
        name."""
        name = self.function_name(hint)
        self.functions[name] = function_like(source, name, params, body, span)
        return name

    def call(
        self, builder: Builder, name: str, args: Sequence[Value], result: Type | None = None
    ) -> Value:
        """Return a call of a function at the types of its arguments; `result` is the type of its
        value, where its definition does not have it."""
        callee = self.functions[name]
        types = match_types(
            callee.type_params, [type_of(p) for p in callee.params], [a.ty for a in args]
        )
        ty = types(function_type(callee).result) if result is None else result
        return builder.apply(name, args, ty, type_arguments(callee.type_params, types))

    def data_name(self, hint: str) -> str:
        """Return a name for a new data type or constructor."""
        return self._data.fresh(hint)


def function_like(
    source: Function,
    name: str,
    params: tuple[Var, ...],
    body: Expr,
    span: Span,
    type_params: tuple[TypeParam, ...] | None = None,
) -> Function:
    """Return a function with the assumptions of another, and its type parameters unless others are
    given."""
    type_params = source.type_params if type_params is None else type_params
    result = type_of(body)
    ty = FnType(tuple(map(type_of, params)), result, type_params)
    return Function(params, body, result, type_params, name, source.assumptions, ty=ty, span=span)
