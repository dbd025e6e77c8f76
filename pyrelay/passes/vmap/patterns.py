"""Patterns by which elements of a batch may differ: numbers, alone or in tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.expr import (
    BindPattern,
    ConstructorPattern,
    LiteralPattern,
    Pattern,
    TuplePattern,
    Var,
    Wildcard,
)
from ...ir.types import BOOL, AdtType, TupleType, Type
from ...operators.builder import Value
from ...operators.primitive.compare import equal, logical_and, logical_not
from ...operators.primitive.create import full
from ..batching import Mask, is_any
from .frame import Found, Frame

if TYPE_CHECKING:
    from .data import Batches


def tests_batched(pattern: Pattern, ty: Type, mask: Mask, batches: Batches) -> bool:
    """Return whether a pattern compares a number that is batched."""
    match pattern:
        case LiteralPattern():
            return is_any(mask)
        case BindPattern(_, inner):
            return inner is not None and tests_batched(inner, ty, mask, batches)
        case TuplePattern(fields):
            assert isinstance(ty, TupleType)
            assert isinstance(mask, tuple)
            parts = zip(fields, ty.fields, mask, strict=True)
            return any(tests_batched(p, t, m, batches) for p, t, m in parts)
        case ConstructorPattern(_, name, fields):
            assert isinstance(ty, AdtType)
            types = batches.fields(ty, name)
            choose = batches.full if is_any(mask) else batches.none
            parts = zip(fields, types, strict=True)
            return any(tests_batched(p, t, choose(t), batches) for p, t in parts)
        case Wildcard():
            return False


def tested(
    pattern: Pattern, value: Found, frame: Frame, ty: Type
) -> tuple[Value | None, list[tuple[Var, Found]]]:
    """Return for which elements a pattern fits, None where data would choose, and what its
    variables are."""
    found, mask = value
    match pattern:
        case LiteralPattern(literal):
            assert isinstance(literal, bool | int | float)
            if found.dtype == BOOL.dtype:
                return found if literal else logical_not(found), []
            return equal(found, literal), []
        case BindPattern(var, inner):
            if inner is None:
                return _always(frame), [(var, value)]
            test, bound = tested(inner, value, frame, ty)
            return test, [(var, value), *bound]
        case TuplePattern(fields):
            assert isinstance(ty, TupleType)
            assert isinstance(mask, tuple)
            every: Value | None = _always(frame)
            names: list[tuple[Var, Found]] = []
            for i, part in enumerate(fields):
                test, bound = tested(part, (found[i], mask[i]), frame, ty.fields[i])
                every = None if every is None or test is None else logical_and(every, test)
                names += bound
            return every, names
        case Wildcard():
            return _always(frame), []
        case ConstructorPattern():
            return None, []


def _always(frame: Frame) -> Value:
    attrs = {"size": (frame.count,), "fill_value": True, "dtype": BOOL.dtype}
    return frame.builder.call(full, (), attrs)
