"""Types of patterns: of their variables, and the constraint that a value is of the type matched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Final, assert_never, final

from ..dataclass import dataclass
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
    Var,
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
    FnType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    batch_name,
    show,
)
from ..prelude.library import LIST, OPTION, element_of, inner_of
from .solver import Solver

if TYPE_CHECKING:
    from ..diagnostics.source import Span
    from ..ir.module import AdtDef
    from .worklist import Worklist


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
        value = solver.awaited(self.value)
        self.is_inside = isinstance(value, AdtType) and value.name == OPTION
        if isinstance(value, AdtType) and self.is_inside:
            (value,) = value.args
            assert not isinstance(value, Dim)
        solver.unify(self.content, value)

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        return PatternMismatch(self.span, "another type", show(solver.resolve(self.value)))


_KINDS: Final[dict[type, str]] = {bool: "bool", int: "int", float: "float", str: "string"}


@final
class Patterns:
    """Types the patterns of a group of functions."""

    def __init__(
        self,
        solver: Solver,
        work: Worklist,
        adts: Mapping[str, AdtDef],
        variables: MutableMapping[Var, Type],
        declare: Callable[[Var], Type],
        constructor: Callable[..., FnType],
    ) -> None:
        """`variables` gets the types of those that patterns bind; `declare` gives the type of an
        annotated one, and `constructor` that of a constructor, opened or not."""
        self.contents: Final[dict[Pattern, ContentConstraint]] = {}
        """The patterns that may stand inside of optionals."""
        self.batches: Final[dict[Pattern, str]] = {}
        """The patterns that take batches apart, with their data types."""
        self._solver: Final = solver
        self._work: Final = work
        self._adts: Final = adts
        self._variables: Final = variables
        self._declare: Final = declare
        self._constructor: Final = constructor

    def declare(self, pattern: Pattern, value: Type) -> None:
        """Set the types of the variables of a pattern, and add what must hold of the value."""
        pending = [(pattern, value)]
        while pending:
            current, ty = pending.pop()
            value_type = ty
            if self._may_be_in_an_optional(current):
                found = ContentConstraint(current, ty, self._solver.fresh())
                self.contents[current] = found
                self._work.add(found)
                ty = found.content
            match current:
                case Wildcard():
                    pass
                case BindPattern(var, inner):
                    if var.ty is None:
                        self._variables[var] = ty
                    else:
                        self._matched(current, ty, self._declare(var))
                    pending += () if inner is None else ((inner, ty),)
                case ConstructorPattern(adt, name, fields):
                    adt = self._batch_of(current, adt, value_type)
                    made = self._constructor(
                        Constructor(adt, name, span=current.span), is_opened=True
                    )
                    self._matched(current, ty, made.result)
                    pending += reversed(self._parts(current, fields, made.params))
                case TuplePattern(fields):
                    holes = tuple(self._solver.fresh() for _ in fields)
                    self._matched(current, ty, TupleType(holes))
                    pending += reversed(list(zip(fields, holes, strict=True)))
                case LiteralPattern(literal):
                    self._matched(current, ty, _literal_type(self._solver, literal))
                case _:
                    assert_never(current)

    def _batch_of(self, pattern: ConstructorPattern, adt: str, value: Type) -> str:
        """Return the data type that a pattern takes apart: a batch has the constructors of its
        elements."""
        known, found = self._solver.shallow(value), adt
        if not isinstance(known, AdtType):
            return adt
        while batch_name(found) in self._adts and found != known.name:
            found = batch_name(found)
        if found != known.name or found == adt:
            return adt
        self.batches[pattern] = found
        return found

    def _may_be_in_an_optional(self, pattern: Pattern) -> bool:
        """Return whether a pattern is for a value that is there, if it is tried on an optional."""
        if OPTION not in self._adts or takes_all(pattern):
            return False
        while isinstance(pattern, BindPattern) and pattern.inner is not None:
            pattern = pattern.inner
        return not isinstance(pattern, ConstructorPattern) or pattern.adt != OPTION

    def _matched(self, pattern: Pattern, value: Type, wanted: Type) -> None:
        self._work.add(PatternConstraint(pattern, value, wanted, self._adts))

    def _parts(
        self, pattern: ConstructorPattern, fields: tuple[Pattern, ...], types: tuple[Type, ...]
    ) -> list[tuple[Pattern, Type]]:
        """Return the patterns of fields with their types; a wrong number of them is reported."""
        if len(fields) != len(types):
            problem = PatternArity(pattern.span, pattern.name, len(types), len(fields))
            self._work.problems.append(problem)
            types = (*types, *(self._solver.fresh() for _ in fields))
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
