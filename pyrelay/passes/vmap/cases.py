"""Branches in code that is generated: matches with one clause a constructor, and conditionals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ...ir.expr import BindPattern, Clause, ConstructorPattern, Expr, If, Match, Var, type_of
from ...ir.types import AdtType, Type
from ...operators.builder import Builder, Value

if TYPE_CHECKING:
    from ...ir.module import AdtDef

Code: TypeAlias = Callable[[Builder], Value]
"""Code that is written into a builder."""
Case: TypeAlias = tuple[Sequence[Type], Callable[[Builder, list[Value]], Value]]
"""The types of the fields of a constructor, and the value that a clause computes from them."""


def match_of(value: Value, definition: AdtDef, cases: Sequence[Case]) -> Match:
    """Return a match on a value of a data type, with a case for each of its constructors."""
    outer = value.builder
    clauses: list[Clause] = []
    for constructor, (types, code) in zip(definition.constructors, cases, strict=True):
        inner = Builder(outer.span, outer.names, outer.solver)
        hints = constructor.field_names or ("field",) * len(types)
        fields = [
            Var(outer.names.fresh(hint), ty, span=outer.span)
            for hint, ty in zip(hints, types, strict=True)
        ]
        found = code(inner, [inner.value(f) for f in fields])
        patterns = tuple(BindPattern(f, span=outer.span) for f in fields)
        pattern = ConstructorPattern(definition.name, constructor.name, patterns, span=outer.span)
        clauses.append(Clause(pattern, inner.block(found)))
    ty = type_of(clauses[0].body)
    return Match(value.atom, tuple(clauses), ty=ty, span=outer.span)


def either(test: Value, then: Code, otherwise: Code) -> Value:
    """Return the value of one of two pieces of code, by a test of the whole batch."""
    builder = test.builder
    bodies: list[Expr] = []
    for code in (then, otherwise):
        inner = Builder(builder.span, builder.names, builder.solver)
        bodies.append(inner.block(code(inner)))
    first, second = bodies
    made = If(test.atom, first, second, type_of(first), span=builder.span)
    return builder.bind(made, "either")


def opened(value: Value, definition: AdtDef, types: Sequence[Type]) -> list[Value]:
    """Return the fields of a value of a data type that has one constructor."""
    assert isinstance(value.ty, AdtType)
    whole = match_of(value, definition, [(types, lambda inner, fields: inner.tuple(fields))])
    fields = value.builder.bind(whole, "fields")
    return [fields[i] for i in range(len(types))]
