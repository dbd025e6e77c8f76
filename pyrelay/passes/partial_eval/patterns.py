"""Case analysis of values that are known in part: the match that is left is on unknown parts alone.

A clause that a known part refutes goes. Of the others, the patterns at known parts go too: what
they bind is a known value. What stays are the patterns at the unknown parts that some clause looks
into, each found by its path in the value. (Sestoft, ML pattern match compilation and partial
evaluation, 1996.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias, assert_never, final

from ...dataclass import dataclass
from ...ir.expr import (
    BindPattern,
    Clause,
    Constant,
    Constructor,
    ConstructorPattern,
    Expr,
    LiteralPattern,
    Pattern,
    TensorData,
    TuplePattern,
    Var,
    Wildcard,
)
from ...ir.traverse import map_pattern
from ...ir.types import AdtType, FnType, TensorType, TupleType, Type, is_float
from .residual import Residual
from .values import Known, Made, Unknown, Value, made

Path: TypeAlias = tuple[int, ...]
"""A part of a value: the numbers of the fields that lead to it."""


@final
@dataclass(slots=True)
class Projected:
    """A clause that may match: what it binds of known parts, and its patterns at unknown ones."""

    clause: Clause
    bound: list[tuple[Var, Value]] = field(default_factory=list["tuple[Var, Value]"])
    rest: dict[Path, tuple[Unknown, Pattern]] = field(
        default_factory=dict["Path", "tuple[Unknown, Pattern]"]
    )

    @property
    def is_sure(self) -> bool:
        """Whether the pattern matches whatever the unknown parts are."""
        return not self.rest


def projected(
    clauses: Sequence[Clause], value: Value, learned: Mapping[Expr, Value]
) -> list[Projected]:
    """Return the clauses of a match that a value may reach."""
    found: list[Projected] = []
    for clause in clauses:
        left = Projected(clause)
        if not _may_match(clause.pattern, value, (), left, learned):
            continue
        found.append(left)
        if left.is_sure and clause.guard is None:
            break
    return found


def _may_match(
    pattern: Pattern, value: Value, path: Path, left: Projected, learned: Mapping[Expr, Value]
) -> bool:
    """Return whether a pattern may match. Patterns nest as deep as written."""
    if isinstance(value, Unknown):
        value = learned.get(value.atom, value)
    match pattern:
        case Wildcard():
            return True
        case BindPattern(var, inner):
            left.bound.append((var, value))
            return inner is None or _may_match(inner, value, path, left, learned)
        case LiteralPattern(literal) if isinstance(value, Known):
            return _may_equal(value.atom, literal, left, path, pattern)
        case ConstructorPattern(name=name, fields=fields) if isinstance(value, Made):
            if value.constructor is None or value.constructor.name != name:
                return False
            return _all(fields, value, path, left, learned)
        case TuplePattern(fields) if isinstance(value, Made):
            return _all(fields, value, path, left, learned)
        case ConstructorPattern() | TuplePattern() | LiteralPattern():
            left.rest[path] = Unknown(value.atom), pattern
            return True
        case other:
            assert_never(other)


def _may_equal(
    constant: Constant, literal: object, left: Projected, path: Path, pattern: Pattern
) -> bool:
    """Return whether a constant may equal a literal. Floats that differ may be equal once
    rounded, so that is left to the program."""
    if isinstance(constant.value, TensorData):
        left.rest[path] = Unknown(constant), pattern
        return True
    if constant.value == literal:
        return True
    is_rounded = isinstance(constant.ty, TensorType) and is_float(constant.ty.dtype)
    if is_rounded:
        left.rest[path] = Unknown(constant), pattern
    return is_rounded


def _all(
    patterns: Sequence[Pattern],
    value: Made,
    path: Path,
    left: Projected,
    learned: Mapping[Expr, Value],
) -> bool:
    parts = zip(patterns, value.fields, strict=True)
    return all(
        _may_match(p, v, (*path, index), left, learned) for index, (p, v) in enumerate(parts)
    )


def unknown_parts(clauses: Sequence[Projected]) -> dict[Path, Unknown]:
    """Return the unknown parts that clauses look into, by their paths."""
    return {path: value for c in clauses for path, (value, _) in c.rest.items()}


@final
@dataclass(frozen=True, slots=True)
class Opened:
    """A pattern of the residual program, and what a value is that it matches."""

    pattern: Pattern
    value: Value | None


def opened(
    pattern: Pattern, atom: Expr, ty: Type, residual: Residual, bind: Callable[[Var], Var]
) -> Opened:
    """Return a pattern with new variables, and the value of an atom that it matches: every part
    gets a name, so that what a branch shows is known in it. `bind` makes the new variables."""
    match pattern:
        case Wildcard():
            return Opened(pattern, None)
        case BindPattern(var, inner):
            new = bind(var)
            if inner is None:
                return Opened(BindPattern(new, span=pattern.span), residual.value(new))
            inside = opened(inner, new, ty, residual, bind)
            return Opened(BindPattern(new, inside.pattern, span=pattern.span), inside.value)
        case LiteralPattern(literal):
            known = Constant(literal, ty, span=pattern.span)
            return Opened(pattern, None if isinstance(literal, float) else Known(known))
        case ConstructorPattern(adt, name, fields):
            callee = Constructor(adt, name, span=pattern.span)
            types = residual.field_types(ty, callee)
            callee = replace(callee, ty=FnType(types or (), ty))
        case TuplePattern(fields):
            callee = None
            types = ty.fields if isinstance(ty, TupleType) else None
    if types is None or not isinstance(ty, AdtType | TupleType):
        return Opened(map_pattern(pattern, bind), None)
    parts = [
        _named(part, part_type, residual, bind)
        for part, part_type in zip(fields, types, strict=True)
    ]
    values = [p.value for p in parts if p.value is not None]
    inside = tuple(p.pattern for p in parts)
    return Opened(replace(pattern, fields=inside), made(atom, callee, values))


def _named(pattern: Pattern, ty: Type, residual: Residual, bind: Callable[[Var], Var]) -> Opened:
    """Return the pattern of a field, with a name for its value."""
    if isinstance(pattern, BindPattern):
        found = opened(pattern, pattern.var, ty, residual, bind)
        assert isinstance(found.pattern, BindPattern)
        return replace(found, value=found.value or residual.value(found.pattern.var))
    var = Var("_", ty, span=pattern.span)
    inside = opened(pattern, var, ty, residual, bind)
    inner = None if isinstance(pattern, Wildcard) else inside.pattern
    named = BindPattern(var, inner, span=pattern.span)
    return Opened(named, inside.value or residual.value(var))
