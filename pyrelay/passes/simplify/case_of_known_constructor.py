"""Case analysis of values that are partly known: which clauses can match, and what they bind."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, assert_never, final

from ...dataclass import dataclass
from ...ir.expr import (
    BindPattern,
    Call,
    Clause,
    Constant,
    Constructor,
    ConstructorPattern,
    Expr,
    LiteralPattern,
    Pattern,
    TensorData,
    Tuple,
    TuplePattern,
    Var,
    Wildcard,
)
from ...ir.types import TensorType, is_float

if TYPE_CHECKING:
    from .rules import Definitions


class Verdict(Enum):
    """Whether a pattern matches a value."""

    YES = "yes"
    NO = "no"
    OPEN = "open"


@final
@dataclass(frozen=True, slots=True)
class Decided:
    """The clauses that may still match; if `bound` is there, the one clause does, and binds it."""

    clauses: tuple[Clause, ...]
    bound: tuple[tuple[Var, Expr], ...] | None = None


def decide(clauses: Sequence[Clause], value: Expr, known: Definitions) -> Decided:
    """Return the rest of a case analysis of an atom."""
    left: list[Clause] = []
    for clause in clauses:
        bound: list[tuple[Var, Expr]] = []
        verdict = matches(clause.pattern, value, known, bound)
        if verdict is Verdict.NO:
            continue
        if verdict is Verdict.YES and clause.guard is None:
            if not left:
                return Decided((clause,), tuple(bound))
            return Decided((*left, clause))
        left.append(clause)
    return Decided(tuple(left))


def matches(
    pattern: Pattern, value: Expr, known: Definitions, bound: list[tuple[Var, Expr]]
) -> Verdict:
    """Return whether a pattern matches an atom; add what it binds if so.

    Patterns nest as deep as written.
    """
    match pattern:
        case Wildcard():
            return Verdict.YES
        case BindPattern(var, inner):
            bound.append((var, value))
            return Verdict.YES if inner is None else matches(inner, value, known, bound)
        case ConstructorPattern(name=name, fields=fields):
            made = known.get(value)
            if not isinstance(made, Call) or not isinstance(made.callee, Constructor):
                return Verdict.OPEN
            if made.callee.name != name:
                return Verdict.NO
            return _all(fields, made.args, known, bound)
        case TuplePattern(fields):
            found = value if isinstance(value, Tuple) else known.get(value)
            if not isinstance(found, Tuple):
                return Verdict.OPEN
            return _all(fields, found.fields, known, bound)
        case LiteralPattern(literal):
            return _equal(value, literal)
        case other:
            assert_never(other)


def _equal(value: Expr, literal: bool | float | str) -> Verdict:
    """Return whether an atom equals a literal. Two floats that differ may be equal once rounded."""
    if not isinstance(value, Constant) or isinstance(value.value, TensorData):
        return Verdict.OPEN
    if value.value == literal:
        return Verdict.YES
    is_rounded = isinstance(value.ty, TensorType) and is_float(value.ty.dtype)
    return Verdict.OPEN if is_rounded else Verdict.NO


def _all(
    patterns: Sequence[Pattern],
    values: Sequence[Expr],
    known: Definitions,
    bound: list[tuple[Var, Expr]],
) -> Verdict:
    verdict = Verdict.YES
    for pattern, value in zip(patterns, values, strict=True):
        found = matches(pattern, value, known, bound)
        if found is Verdict.NO:
            return found
        if found is Verdict.OPEN:
            verdict = found
    return verdict
