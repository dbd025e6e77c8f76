"""Types of patterns: of their variables, and the constraint that a value is of the type matched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never, final

from ..diagnostics.catalogue.patterns import (
    PatternArity,
    PatternMismatch,
)
from ..diagnostics.diagnostic import Problem
from ..ir.dims import Dim
from ..ir.expr import (
    BindPattern,
    Constructor,
    ConstructorPattern,
    LiteralPattern,
    Pattern,
    TuplePattern,
    Wildcard,
)
from ..ir.op import Stuck
from ..ir.traverse import takes_all
from ..ir.types import (
    BOOL,
    PRELUDE,
    STR,
    AdtType,
    DTypeKind,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    show,
)
from ..prelude.library import LIST, OPTION
from .coercions.listed import element_of
from .coercions.optional import inner_of
from .solver import Solver

if TYPE_CHECKING:
    from ..diagnostics.source import Span
    from ..ir.module import AdtDef
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
        if inner_of(self.wanted) is None and element_of(self.wanted) is None:
            solver.flow(self.value, self.wanted)
        else:  # what is tested for None, or taken apart as a list, must be an optional, or a list
            solver.unify(self.value, self.wanted)

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        value = solver.resolve(self.value)
        is_own = isinstance(value, AdtType) and not value.name.startswith(PRELUDE)
        cases = self.adts[value.name].constructors if isinstance(value, AdtType) and is_own else ()
        names = tuple(c.name for c in cases)
        is_option = isinstance(self.pattern, ConstructorPattern) and self.pattern.adt == OPTION
        way = f"annotate it `{show(value)} | None`" if is_option else None
        return PatternMismatch(self.span, self._kind(solver), show(value), names, way)

    def _kind(self, solver: Solver) -> str:
        match self.pattern:
            case ConstructorPattern(adt) if adt == OPTION:
                return "`None`, or a value that may be `None`"
            case ConstructorPattern(adt) if adt == LIST:
                return "a list"
            case ConstructorPattern(adt, name):
                return f"a `{name}`" if name == adt else f"a `{name}` of {adt}"
            case TuplePattern(fields):
                return f"a tuple of {len(fields)}"
            case LiteralPattern(value):
                return f"the {_KINDS[type(value)]} {value!r}"
            case _:
                return show(solver.resolve(self.wanted))


@final
@dataclass(slots=True)
class ContentConstraint:
    """A pattern is tried on a value, or on what is in it if it is an optional."""

    pattern: Pattern
    value: Type
    content: Type
    is_inside: bool = False
    """Whether the value is an optional, so that the pattern stands inside of one."""

    @property
    def span(self) -> Span:
        """The place in the user's program."""
        return self.pattern.span

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        value = solver.shallow(self.value)
        if isinstance(value, TypeHole) and not solver.settling:
            raise Stuck(value)
        self.is_inside = isinstance(value, AdtType) and value.name == OPTION
        if isinstance(value, AdtType) and self.is_inside:
            (value,) = value.args
            assert not isinstance(value, Dim)
        solver.unify(self.content, value)

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        return PatternMismatch(self.span, "another type", show(solver.resolve(self.value)))


_KINDS: Final[dict[type, str]] = {bool: "bool", int: "int", float: "float", str: "string"}


def declare_pattern(generator: Generator, pattern: Pattern, value: Type) -> None:
    """Set the types of the variables of a pattern, and add what must hold of the value."""
    pending = [(pattern, value)]
    while pending:
        current, ty = pending.pop()
        if _may_be_in_an_optional(generator, current):
            found = ContentConstraint(current, ty, generator.solver.fresh())
            generator.contents[current] = found
            generator.work.add(found)
            ty = found.content
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


def _may_be_in_an_optional(generator: Generator, pattern: Pattern) -> bool:
    """Return whether a pattern is for a value that is there, if it is tried on an optional."""
    if OPTION not in generator.adts or takes_all(pattern):
        return False
    while isinstance(pattern, BindPattern) and pattern.inner is not None:
        pattern = pattern.inner
    return not isinstance(pattern, ConstructorPattern) or pattern.adt != OPTION


def _matched(generator: Generator, pattern: Pattern, value: Type, wanted: Type) -> None:
    generator.work.add(PatternConstraint(pattern, value, wanted, generator.adts))


def _parts(
    generator: Generator,
    pattern: ConstructorPattern,
    fields: tuple[Pattern, ...],
    types: tuple[Type, ...],
) -> list[tuple[Pattern, Type]]:
    """Return the patterns of fields with their types; a wrong number of them is reported."""
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
