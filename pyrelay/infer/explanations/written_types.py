"""Types as a text or a document may write them, and Python cannot: those that mean nothing here.

A function of the module is used at another instance by each of its calls, a local one by each of
its copies. A value that is passed in, stored or returned is one function of one type, so `fn [A](A)
-> A` (rank 2) is refused where it is written as the type of such a value. So is a size where a data
type takes a type, and a type where it takes a size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import final

from ...dataclass import dataclass
from ...diagnostics.catalogue.text import MalformedType
from ...diagnostics.catalogue.types import QuantifiedType
from ...diagnostics.diagnostic import Problem
from ...diagnostics.source import Span
from ...ir.dims import Dim, DimVar
from ...ir.expr import Binding, Call, Expr, Function, LetBlock
from ...ir.module import AdtDef, Module
from ...ir.traverse import bound_vars, post_order
from ...ir.types import AdtType, FnType, Type, TypeParam, subtypes


def meaningless_types(module: Module) -> Iterator[Problem]:
    """Return the places of a module where a type quantifies inside, or has an argument of another
    kind than the data type takes."""
    for adt in module.adts.values():
        for written in _in_data(adt):
            yield from _mistakes(written, module.adts)
    for name, function in module.functions.items():
        for written in _in_function(name, function):
            yield from _mistakes(written, module.adts)


@final
@dataclass(frozen=True, slots=True)
class _Written:
    """A type where it is written: of what, and in what."""

    ty: Type
    span: Span
    what: str
    around: str | None


def _mistakes(written: _Written, adts: Mapping[str, AdtDef]) -> Iterator[Problem]:
    inner = tuple(subtypes(written.ty))
    for part in inner:
        if isinstance(part, AdtType) and part.args and part.name in adts:
            yield from _misapplied(written.span, part, adts[part.name].type_params)
    for param in (p.type_params[0] for p in inner if isinstance(p, FnType) and p.type_params):
        yield QuantifiedType(written.span, written.what, param.name, written.around)


def _misapplied(span: Span, ty: AdtType, params: Iterable[TypeParam]) -> Iterator[Problem]:
    name = ty.name.removeprefix("prelude.")
    for param, arg in zip(params, ty.args, strict=False):
        if isinstance(param, DimVar) is isinstance(arg, Dim):
            continue
        wanted, given = ("a size", "a type") if isinstance(param, DimVar) else ("a type", "a size")
        yield MalformedType(span, f"`{name}` takes {wanted} as `{param.name}`, not {given}", wanted)


def _in_data(adt: AdtDef) -> Iterator[_Written]:
    for constructor in adt.constructors:
        for number, field in enumerate(constructor.fields, start=1):
            what = f"field {number} of `{constructor.name}`"
            yield _Written(field, adt.span, what, f"`{adt.name}`")


def _in_function(name: str, function: Function) -> Iterator[_Written]:
    around = f"`{name}`"
    nodes = list(post_order(function))
    local = {b.var for b in _bindings(nodes) if isinstance(b.value, Function)}
    for node in nodes:
        for var in bound_vars(node):
            if var.ty is not None:
                holder = None if var in local else around
                yield _Written(var.ty, var.span, f"`{var.name}`", holder)
        if isinstance(node, Function) and node.result is not None:
            yield _Written(node.result, node.span, "the result", around)
        if isinstance(node, Call):
            types = (a for a in node.type_args if not isinstance(a, Dim))
            yield from (_Written(ty, node.span, "a type argument", around) for ty in types)


def _bindings(nodes: Iterable[Expr]) -> Iterator[Binding]:
    for node in nodes:
        if isinstance(node, LetBlock):
            yield from node.bindings
