"""Function types with type parameters of their own (rank 2), which only a text can write.

A function of the module is used at another instance by each of its calls, a local one by each of
its copies. What is passed in, stored or given back is one function of one type, so `fn [A](A) -> A`
is refused where it is written as the type of such a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...diagnostics.catalogue.types import QuantifiedType
from ...diagnostics.diagnostic import Problem
from ...ir.dims import Dim
from ...ir.expr import Binding, Call, Expr, Function, LetBlock
from ...ir.module import AdtDef, Module
from ...ir.traverse import bound_vars, post_order
from ...ir.types import FnType, Type, TypeParam, subtypes


def quantified(module: Module) -> Iterator[Problem]:
    """Give the places of a module where a type quantifies inside."""
    for adt in module.adts.values():
        yield from _in_data(adt)
    for name, function in module.functions.items():
        yield from _in_function(name, function)


def _in_data(adt: AdtDef) -> Iterator[Problem]:
    for constructor in adt.constructors:
        for number, field in enumerate(constructor.fields, start=1):
            for param in _own_params(field):
                what = f"field {number} of `{constructor.name}`"
                yield QuantifiedType(adt.span, what, param.name, f"`{adt.name}`")


def _in_function(name: str, function: Function) -> Iterator[Problem]:
    around = f"`{name}`"
    nodes = list(post_order(function))
    local = {b.var for b in _bindings(nodes) if isinstance(b.value, Function)}
    for node in nodes:
        for var in bound_vars(node):
            for param in _own_params(var.ty):
                holder = None if var in local else around
                yield QuantifiedType(var.span, f"`{var.name}`", param.name, holder)
        if isinstance(node, Function):
            for param in _own_params(node.result):
                yield QuantifiedType(node.span, "the result", param.name, around)
        if isinstance(node, Call):
            for param in _own_params(*(a for a in node.type_args if not isinstance(a, Dim))):
                yield QuantifiedType(node.span, "a type argument", param.name, around)


def _bindings(nodes: Iterable[Expr]) -> Iterator[Binding]:
    for node in nodes:
        if isinstance(node, LetBlock):
            yield from node.bindings


def _own_params(*types: Type | None) -> Iterator[TypeParam]:
    """Give the first type parameter that stands inside of each type."""
    for ty in types:
        inner = () if ty is None else subtypes(ty)
        yield from (p.type_params[0] for p in inner if isinstance(p, FnType) and p.type_params)
