"""Types of patterns: of their variables, and the constraint that a value is of the type matched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never, final

from ...diagnostics.catalogue.types import PatternArity, PatternMismatch
from ...diagnostics.diagnostic import Problem
from ...ir.expr import (
    BindPattern,
    Constructor,
    ConstructorPattern,
    LiteralPattern,
    Pattern,
    TuplePattern,
    Wildcard,
)
from ...ir.op import Stuck
from ...ir.types import (
    BOOL,
    STR,
    AdtType,
    DTypeKind,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    show,
)
from ...prelude.library import OPTION
from .optional import inner_of
from .solver import Solver

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ...ir.module import AdtDef
    from .generate import Generator


@final
@dataclass(slots=True)
class PatternConstraint:
    """A pattern is tried on a value of its type."""

    pattern: Pattern
    value: Type
    wanted: Type
    adts: Mapping[str, AdtDef]

    @property
    def span(self) -> Span:
        """The place in the user's program."""
        return self.pattern.span

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        value, literal = solver.shallow(self.value), isinstance(self.pattern, LiteralPattern)
        if literal and isinstance(value, TypeHole) and not solver.settling:
            raise Stuck(value)  # a number of whatever dtype the value turns out to have
        if inner_of(self.wanted) is None:
            solver.flow(self.value, self.wanted)
        else:
            solver.unify(self.value, self.wanted)  # what is tested for None must be an optional

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Give what to tell the user."""
        value = solver.resolve(self.value)
        cases = self.adts[value.name].constructors if isinstance(value, AdtType) else ()
        names = tuple(c.name for c in cases)
        is_option = isinstance(self.pattern, ConstructorPattern) and self.pattern.adt == OPTION
        way = f"annotate it `{show(value)} | None`" if is_option else None
        return PatternMismatch(self.span, self._kind(solver), show(value), names, way)

    def _kind(self, solver: Solver) -> str:
        match self.pattern:
            case ConstructorPattern(adt) if adt == OPTION:
                return "`None`, or a value that may be `None`"
            case ConstructorPattern(adt, name):
                return f"a `{name}` of {adt}"
            case TuplePattern(fields):
                return f"a tuple of {len(fields)}"
            case LiteralPattern(value):
                return f"the {_KINDS[type(value)]} {value!r}"
            case _:
                return show(solver.resolve(self.wanted))


_KINDS: Final[dict[type, str]] = {bool: "bool", int: "int", float: "float", str: "string"}


def declare_pattern(generator: Generator, pattern: Pattern, value: Type) -> None:
    """Give the variables of a pattern their types, and add what must hold of the value."""
    pending = [(pattern, value)]
    while pending:
        current, ty = pending.pop()
        match current:
            case Wildcard():
                pass
            case BindPattern(var, inner):
                if var.ty is None:
                    generator.vars[var] = ty
                else:
                    _matched(generator, current, ty, generator.declare_var(var))
                pending += () if inner is None else ((inner, ty),)
            case ConstructorPattern(adt, name, fields):
                made = generator.constructor(
                    Constructor(adt, name, span=current.span), is_opened=True
                )
                _matched(generator, current, ty, made.result)
                pending += reversed(_parts(generator, current, fields, made.params))
            case TuplePattern(fields):
                holes = tuple(generator.solver.fresh() for _ in fields)
                _matched(generator, current, ty, TupleType(holes))
                pending += reversed(list(zip(fields, holes, strict=True)))
            case LiteralPattern(literal):
                _matched(generator, current, ty, _literal_type(generator.solver, literal))
            case _:
                assert_never(current)


def _matched(generator: Generator, pattern: Pattern, value: Type, wanted: Type) -> None:
    generator.work.add(PatternConstraint(pattern, value, wanted, generator.adts))


def _parts(
    generator: Generator,
    pattern: ConstructorPattern,
    fields: tuple[Pattern, ...],
    types: tuple[Type, ...],
) -> list[tuple[Pattern, Type]]:
    """Give the patterns of fields with their types; a wrong number of them is reported."""
    if len(fields) != len(types):
        problem = PatternArity(pattern.span, pattern.name, len(types), len(fields))
        generator.work.problems.append(problem)
        types = (*types, *(generator.solver.fresh() for _ in fields))
    return list(zip(fields, types, strict=False))


def _literal_type(solver: Solver, value: bool | float | str) -> Type:
    match value:
        case bool():
            return BOOL
        case str():
            return STR
        case int():
            return TensorType((), solver.fresh_dtype(DTypeKind.INT))
        case float():
            return TensorType((), solver.fresh_dtype(DTypeKind.FLOAT))
