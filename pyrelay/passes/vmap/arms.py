"""Arms of branches that elements of a batch take for themselves.

An arm has *goals*: what must hold of an element for it to take the arm. Each goal narrows the
elements: by a test, by a pattern, by a guard. The body is written for those that are left, and its
value is merged into the values of the arms before it. Where several arms may fit an element, the
first one takes it: `left` has the elements that none has taken so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.expr import (
    BindPattern,
    Clause,
    ConstructorPattern,
    Expr,
    If,
    LiteralPattern,
    Match,
    Pattern,
    TuplePattern,
    Var,
    Wildcard,
    type_of,
)
from ...ir.traverse import Steps
from ...ir.types import BOOL, AdtType, TensorType, TupleType, Type, bool_, int64
from ...operators.builder import Value
from ...operators.primitive.compare import equal, logical_not
from ...operators.primitive.create import full
from ...operators.primitive.index import set_at
from .frame import Found, Frame
from .lanes import if_any, positions
from .masks import MIXED, Mask, is_any

if TYPE_CHECKING:
    from .mixtures import Mixtures


@final
@dataclass(frozen=True, slots=True)
class Test:
    """A condition holds, or does not."""

    condition: Var
    is_wanted: bool = True


@final
@dataclass(frozen=True, slots=True)
class Fits:
    """A value fits a pattern, which binds the variables of the pattern."""

    pattern: Pattern
    value: Var


@final
@dataclass(frozen=True, slots=True)
class Holds:
    """A guard holds."""

    guard: Expr


Goal: TypeAlias = Test | Fits | Holds


@final
@dataclass(frozen=True, slots=True)
class Arm:
    """A body, and what must hold of an element that takes it."""

    goals: tuple[Goal, ...]
    body: Expr


Write: TypeAlias = Callable[[Expr, Frame], Steps[Found]]
"""Writes an expression into a frame."""
_Leaf: TypeAlias = Callable[[Frame], Steps[Value]]


def subject(frame: Frame, found: Found, ty: Type) -> Var:
    """Return a variable that stands for a value in a frame and those inside it."""
    var = Var("subject", ty, span=frame.builder.span)
    frame.bind(var, found)
    return var


@final
class Arms:
    """Writes the arms of one branch, in a frame, whose value has a type."""

    def __init__(self, write: Write, batches: Mixtures, frame: Frame, ty: Type) -> None:
        self._write: Final = write
        self._batches: Final = batches
        self._forms: Final = batches.forms
        self._frame: Final = frame
        self._ty: Final = ty
        self._mask: Final[Mask] = batches.forms.differing(ty)

    def merged(self, arms: Sequence[Arm], *, is_first_taken: bool) -> Steps[Value]:
        """Return the value of arms, of which each element takes one; the first that fits it, if
        `is_first_taken` says that several may."""
        builder, count = self._frame.builder, self._frame.count
        merged = self._batches.blank(builder, self._ty, count)
        left: Value | None = None
        for number, arm in enumerate(arms):
            goals = arm.goals
            is_tracked = is_first_taken and number + 1 < len(arms)
            if left is not None:
                goals = (Test(subject(self._frame, (left, True), BOOL)), *goals)
            if is_tracked and left is None:
                every = {"size": (count,), "fill_value": True, "dtype": bool_}
                left = builder.call(full, (), every)
            state = [merged, left] if is_tracked and left is not None else [merged]
            nothing = builder.tuple(state) if len(state) > 1 else merged

            leaf = partial(self._leaf, arm, state)
            found = yield self._narrowed(goals, self._frame, leaf, nothing)
            merged, left = (found[0], found[1]) if len(state) > 1 else (found, left)
        return merged

    def _leaf(self, arm: Arm, state: Sequence[Value], inner: Frame) -> Steps[Value]:
        """Write the body of an arm; return the state with its value."""
        found, mask = yield self._write(arm.body, inner)
        part = self._batches.widened(found, self._ty, mask, self._mask, inner.count)
        whole, *left = (inner.builder.value(v.atom) for v in state)
        places = inner.places_in(self._frame)
        if places is None:
            # It may be that not all take the arm, where one condition for all does not hold.
            merged, rest = part, [logical_not(v) for v in left]
        else:
            merged = self._batches.merged(whole, part, self._ty, places, self._frame.count)
            at = inner.builder.tuple((places,))
            no = inner.builder.constant(False, bool_)
            rest = [set_at(v, at, no, spec=(("int", 0),)) for v in left]
        return inner.builder.tuple([merged, *rest]) if rest else merged

    # Goals.

    def _narrowed(
        self, goals: tuple[Goal, ...], frame: Frame, leaf: _Leaf, nothing: Value
    ) -> Steps[Value]:
        """Write a leaf for the elements of a frame that reach all goals; for others the value is
        `nothing`."""
        while goals:
            goal, *rest = goals
            goals = tuple(rest)
            match goal:
                case Holds(guard):
                    found = yield self._write(guard, frame)
                    goals = (Test(subject(frame, found, BOOL)), *goals)
                case Test():
                    return (yield self._tested(goal, goals, frame, leaf, nothing))
                case Fits(ConstructorPattern() as pattern, value):
                    return (yield self._opened(pattern, value, goals, frame, leaf, nothing))
                case Fits(LiteralPattern() as pattern, value) if not is_any(frame.find(value)[1]):
                    return (yield self._chosen(pattern, value, goals, frame, leaf, nothing))
                case Fits(pattern, value):
                    goals = (*self._simpler(pattern, value, frame), *goals)
        return (yield leaf(frame))

    def _simpler(self, pattern: Pattern, value: Var, frame: Frame) -> Sequence[Goal]:
        """Return the goals that a pattern consists of, its variable bound."""
        match pattern:
            case LiteralPattern():
                return [self._equal(pattern, value, frame)]
            case BindPattern(var, inside):
                frame.bind(var, frame.find(value))
                return [] if inside is None else [Fits(inside, value)]
            case TuplePattern(fields):
                return self._of_fields(fields, value, frame)
            case Wildcard():
                return []
            case ConstructorPattern():
                raise AssertionError("opened where it is met")

    def _of_fields(self, fields: Sequence[Pattern], value: Var, frame: Frame) -> list[Goal]:
        found, mask = frame.find(value)
        ty = type_of(value)
        assert isinstance(ty, TupleType)
        assert isinstance(mask, tuple)
        each = enumerate(zip(fields, ty.fields, mask, strict=True))
        return [Fits(p, subject(frame, (found[i], m), t)) for i, (p, t, m) in each]

    def _equal(self, pattern: LiteralPattern, value: Var, frame: Frame) -> Test:
        """Return the test of numbers that differ between elements."""
        number, literal = frame.find(value)[0], pattern.value
        assert isinstance(literal, bool | int | float)
        if number.dtype == bool_:
            return Test(value, bool(literal))
        return Test(subject(frame, (equal(number, literal), True), BOOL))

    def _tested(
        self, test: Test, goals: tuple[Goal, ...], frame: Frame, leaf: _Leaf, nothing: Value
    ) -> Steps[Value]:
        condition, mask = frame.find(test.condition)
        builder = frame.builder
        condition = condition if test.is_wanted else logical_not(condition)
        if not is_any(mask):
            inner = frame.inside()
            then = _block(inner, (yield self._narrowed(goals, inner, leaf, nothing)))
            made = If(condition.atom, then, nothing.atom, nothing.ty, span=builder.span)
            return builder.bind(made, "if")
        places = positions(condition)
        inner = frame.inside(places.shape[0], places)
        then = _block(inner, (yield self._narrowed(goals, inner, leaf, nothing)))
        return if_any(builder, places.shape[0], then, builder.value(nothing.atom))

    def _chosen(
        self,
        pattern: LiteralPattern,
        value: Var,
        goals: tuple[Goal, ...],
        frame: Frame,
        leaf: _Leaf,
        nothing: Value,
    ) -> Steps[Value]:
        """Write a match by a literal on a value that is the same for all elements."""
        inner = frame.inside()
        then = _block(inner, (yield self._narrowed(goals, inner, leaf, nothing)))
        return _match(frame, frame.find(value)[0], pattern, then, nothing)

    def _opened(
        self,
        pattern: ConstructorPattern,
        value: Var,
        goals: tuple[Goal, ...],
        frame: Frame,
        leaf: _Leaf,
        nothing: Value,
    ) -> Steps[Value]:
        """Write a match by a constructor: for all elements, or for those of its part."""
        found, mask = frame.find(value)
        ty = type_of(value)
        assert isinstance(ty, AdtType)
        forms, span = self._forms, pattern.span
        fields = forms.fields(ty, pattern.name)
        types = [_bound_type(p, t) for p, t in zip(pattern.fields, fields, strict=True)]
        bound: list[Var] = []
        if mask is MIXED:
            found = self._batches.part_of(found, ty, pattern.name)
            assert isinstance(found.ty, AdtType)
            adt, name = forms.some_of(found.ty)
            count = Dim.of(frame.builder.names.fresh("elements"))
            places = Var("places", TensorType((count,), int64), span=span)
            bound.append(places)
            inner = frame.inside(count, frame.builder.value(places))
            choose = forms.differing
        else:
            adt, name = pattern.adt, pattern.name
            if mask:
                adt, name = forms.constructor(adt, name)
            inner = frame.inside()
            choose = forms.full if mask else forms.none
        inside: list[Var] = []
        for each in types:
            var = Var("field", forms.type(each, choose(each), inner.count), span=span)
            bound.append(var)
            inside.append(subject(inner, (inner.builder.value(var), choose(each)), each))
        goals = (*map(Fits, pattern.fields, inside), *goals)
        then = _block(inner, (yield self._narrowed(goals, inner, leaf, nothing)))
        patterns = tuple(BindPattern(v, span=span) for v in bound)
        opened = ConstructorPattern(adt, name, patterns, span=span)
        is_only = forms.is_only_constructor(adt)
        return _match(frame, found, opened, then, None if is_only else nothing)


def _bound_type(pattern: Pattern, ty: Type) -> Type:
    """Return the type of a field, with the sizes that the variable of a pattern names."""
    return type_of(pattern.var) if isinstance(pattern, BindPattern) else ty


def _block(frame: Frame, value: Value) -> Expr:
    return frame.builder.block(value)


def _match(
    frame: Frame, value: Value, pattern: Pattern, then: Expr, nothing: Value | None
) -> Value:
    """Return the value of a body where a value fits a pattern, else another value, if any."""
    span = frame.builder.span
    clauses = [Clause(pattern, then)]
    if nothing is not None:
        clauses.append(Clause(Wildcard(span=span), nothing.atom))
    made = Match(value.atom, tuple(clauses), ty=type_of(then), span=span)
    return frame.builder.bind(made, "match")
