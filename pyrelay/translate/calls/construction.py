"""Values of data types: calls of dataclasses, dataclasses as functions, captured instances."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ...diagnostics.catalogue.signatures import WrongArguments
from ...ir.constant import placeholder
from ...ir.expr import Call, Constructor, Expr
from ...ir.traverse import Steps
from ..data.data import DataConstructor
from ..data.data_class import FACTORY, Field
from ..program.context import Context
from ..program.environment import Static
from ..source.scope import MISSING
from .arguments import Callee, Slot, argument_values, in_order
from .mentions import lift


def construct_call(cx: Context, node: ast.Call, cls: type) -> Steps[Expr]:
    """Translate a call of a dataclass, with positional and keyword arguments and defaults."""
    span = cx.span(node)
    found = cx.constructor(cls, span)
    if found is None:
        return placeholder(span)
    callee = Callee(cls.__name__, tuple(map(_slot, found.fields)), _text(found))
    written = yield argument_values(cx, node, callee)
    if written is None:
        return placeholder(span)
    for field in found.fields:
        if field.name not in written and field.default is FACTORY:
            why = f"needs its argument `{field.name}`: compiled code calls no `default_factory`"
            return cx.refuse(WrongArguments(span, cls.__name__, why, _text(found)))
    maker = Constructor(found.adt, found.name, span=cx.span(node.func))

    def call(args: Mapping[str, Expr]) -> Expr:
        fields = tuple(
            args.get(f.name) or lift(cx, Static(f.default), f.name, span) for f in found.fields
        )
        return Call(maker, fields, span=span)

    return in_order(written, found.field_names, call)


def _slot(field: Field) -> Slot:
    return Slot(field.name, field.default is MISSING, field.keyword_only)


def _text(found: DataConstructor) -> str:
    """Return the signature of a constructor, as Python would show it."""
    shown: list[str] = []
    for field in found.fields:
        if field.keyword_only and "*" not in shown:
            shown.append("*")
        shown.append(field.name if field.default is MISSING else f"{field.name}=...")
    return f"{found.cls.__name__}({', '.join(shown)})"
