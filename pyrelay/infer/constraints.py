"""The constraints of inference.

A constraint's `attempt` makes progress, or raises `Stuck` on the hole it waits for, or `Clash`;
`explain` turns a clash into the problem to show, with the places that disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, final

from ..dataclass import dataclass
from ..diagnostics.catalogue.layouts import Conversion
from ..diagnostics.catalogue.lists import ElementMismatch
from ..diagnostics.catalogue.types import (
    ArgumentCountMismatch,
    BranchMismatch,
    CellMismatch,
    NameMismatch,
    NotACell,
    NotAFunction,
    NotATuple,
    ReturnMismatch,
)
from ..diagnostics.diagnostic import Problem
from ..ir.calls.attributes import WrongAttribute
from ..ir.dims import Dim
from ..ir.expr import Call, Constructor, Expr, Function
from ..ir.op import Clash, Stuck
from ..ir.types import INT, AdtType, DType, FnType, TensorType, TupleType, Type, TypeHole, show
from ..operators.host.field import field as field_op
from ..operators.host.loop import by_type, unpacked
from ..prelude.library import LIST, element_of, inner_of
from .explanations.explain import (
    explain_argument,
    explain_operator,
    explain_unpacking,
    one_type,
    operand_text,
)
from .joins import join, takes_none
from .operators import OperatorCall, Reading
from .overloads.joined_lists import is_empty_list, joins_lists
from .own_sizes import Adapt, may_get_own, must_wait
from .records import explain_field, explain_method
from .solver import CheckSite, Solver

if TYPE_CHECKING:
    from ..diagnostics.source import Span
    from ..ir.module import AdtDef


class Constraint(Protocol):
    """Something that must hold between types."""

    @property
    def span(self) -> Span:
        """The place in the user's program that asks for it."""
        ...

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        ...

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user when it cannot hold."""
        ...


@final
@dataclass(slots=True)
class OperatorConstraint:
    """An operator call is well typed; `read` types it by its overload, if it has one."""

    call: OperatorCall
    read: Callable[[OperatorCall], bool]
    adts: Mapping[str, AdtDef]

    @property
    def span(self) -> Span:
        """The place in the user's program."""
        return self.call.call.span

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        solver.place = CheckSite(self.call.call, is_after=False)
        self.call.check_attributes()
        if not self.read(self.call):
            self.call.attempt(solver)

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        if self.call.op is field_op and not isinstance(clash, WrongAttribute):
            return explain_field(self.call.call, solver.resolve(self.call.types[0]), self.adts)
        if self.call.op is by_type and not isinstance(clash, WrongAttribute):
            return explain_method(self.call.call, solver.resolve(self.call.types[1]))
        if self.call.op is unpacked and not isinstance(clash, WrongAttribute):
            count, actual = self.call.call.attrs["count"], solver.resolve(self.call.types[0])
            return explain_unpacking(self.span, count, actual, self.call.call.args[0])
        return explain_operator(solver, self.call, clash)


@final
@dataclass(slots=True)
class FlowConstraint:
    """A value arrives where a type is expected: a return, an annotated name."""

    actual: Type
    expected: Type
    span: Span
    function: Function | None
    kind: str
    value: Expr | None = None
    """The arriving value, where its sizes may be compared while running."""
    name: str = ""
    """The annotated name."""
    adapt: Callable[[Type, Type], Type] | None = None
    """Brings the value to another type, in a program with tensors that have sizes of their own."""

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        solver.place = None if self.value is None else CheckSite(self.value, is_after=True)
        if self.adapt is not None:
            if must_wait(self.actual, self.expected, solver):
                raise Stuck(solver.shallow(self.actual))
            self.actual = self.adapt(self.actual, self.expected)
        solver.flow(self.actual, self.expected)

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        actual, wanted = solver.resolve(self.actual), self.expected
        if isinstance(wanted, TupleType) and self.kind == "let" and not _same_count(actual, wanted):
            value = self.value
            if isinstance(value, Call) and value.callee is unpacked:
                value = value.args[0]
            return explain_unpacking(self.span, len(wanted.fields), actual, value)
        expected = solver.resolve(wanted)
        if self.kind == "cell":
            return NotACell(self.span, show(actual))
        if self.kind == "content":
            return CellMismatch(self.span, show(expected), show(actual))
        if self.kind == "let":
            return NameMismatch(self.span, self.name, show(expected), show(actual))
        name = None if self.function is None else self.function.name
        way = None if self.value is None else _made(operand_text(self.value), actual, expected)
        return ReturnMismatch(self.span, name or "this function", show(expected), show(actual), way)


def _made(text: str, actual: Type, wanted: Type) -> str | None:
    """Return how a value of another type is made into one that is wanted; None where that depends
    on the program."""
    match actual, wanted:
        case TensorType(()), _ if wanted == INT:
            return f"make it an integer: `int({text})`"
        case TensorType(a, p, m), TensorType(b, q, n) if (a, p) == (b, q) and m is not n:
            return Conversion(text, n.value, None).help
        case TensorType(a), TensorType(b, DType() as dtype) if a == b:
            return f"cast the value: `relay.cast({text}, relay.{dtype})`"
        case _ if inner_of(actual) == wanted:
            test = f"test `{text} is None` first" if text.isidentifier() else "test it first"
            return f"return another value where it is None: {test}"
        case _:
            return None


def _same_count(actual: Type, wanted: TupleType) -> bool:
    return isinstance(actual, TupleType) and len(actual.fields) == len(wanted.fields)


@final
@dataclass(slots=True)
class ApplyConstraint:
    """A function is called with arguments it takes."""

    call: Call
    callee: Type
    types: tuple[Type, ...]
    result: Type
    declared: Function | None
    adapt: Adapt | None = None
    """Brings arguments to other types, in a program with tensors that have sizes of their own."""
    is_open: bool = False
    """Whether the function's type is still being found, of this call too."""
    failing: int = -1
    adapted: dict[int, Reading] = field(default_factory=dict[int, "Reading"])
    """The arguments that were brought to other types, by place."""

    @property
    def span(self) -> Span:
        """The place in the user's program."""
        return self.call.span

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        callee = solver.shallow(self.callee)
        if isinstance(callee, TypeHole):
            if not solver.settling:
                raise Stuck(callee)
            solver.unify(callee, FnType(self.types, self.result))
            return
        if not isinstance(callee, FnType) or len(callee.params) != len(self.types):
            raise Clash("not callable so")
        if joins_lists(self.call) and not solver.settling:
            self._await_elements(solver)
        stuck: TypeHole | None = None
        for position in self._order(solver):
            actual, wanted = self.types[position], callee.params[position]
            self.failing = position
            if self.adapt is not None and may_get_own(self.call, actual, wanted, solver):
                head = solver.shallow(wanted)
                stuck = head if isinstance(head, TypeHole) else None
            elif not self._waits(solver, actual, wanted):
                # What a loop carries has one size: the parameter has no other than it came in with.
                place = CheckSite(self.call, is_after=False)
                solver.place = None if self._is_found(position) else place
                solver.flow(self._adapted(solver, position, wanted), wanted)
            elif stuck is None:
                head = solver.shallow(actual)
                stuck = head if isinstance(head, TypeHole) else None
        solver.unify(self.result, callee.result)
        if stuck is not None:
            raise Stuck(stuck)

    def _adapted(self, solver: Solver, position: int, wanted: Type) -> Type:
        """Return the type of an argument, brought to another one where that takes a step of its
        own."""
        actual = self.types[position]
        if self.adapt is None:
            return actual
        if must_wait(actual, wanted, solver):
            raise Stuck(solver.shallow(actual))
        found = self.adapt(self.call.args[position], actual, wanted)
        if found is None:
            return actual
        self.adapted[position], actual = found
        self.types = (*self.types[:position], actual, *self.types[position + 1 :])
        return actual

    def _await_elements(self, solver: Solver) -> None:
        """Wait until it is known what lists are of that are joined, so that a difference is blamed
        on the two, and not on what makes the second. Raises Stuck."""
        if any(takes_none(solver, part) for ty in self.types for part in _elements(solver, ty)):
            return
        for argument, ty in zip(self.call.args, map(solver.shallow, self.types), strict=True):
            match ty:
                case _ if is_empty_list(argument):
                    pass
                case TypeHole():
                    raise Stuck(ty)
                case AdtType(args=(element,)) if not isinstance(element, Dim):
                    solver.known(element)
                case _:
                    pass

    def _order(self, solver: Solver) -> Sequence[int]:
        """Return the order in which arguments arrive. Of a list, what is put before optionals is
        one too, so these come first."""
        order: Sequence[int] = range(len(self.types))
        if self.adapt is not None:  # what functions take is known from the rest
            order = sorted(order, key=lambda i: isinstance(solver.shallow(self.types[i]), FnType))
        match self.call.callee:
            case Constructor(adt, "Cons") if adt == LIST:
                rest = solver.shallow(self.types[1])
            case _:
                return order
        match rest:
            case AdtType(args=(element,)) if not isinstance(element, Dim):
                return order[::-1] if takes_none(solver, element) else order
            case _:
                return order

    def _is_found(self, position: int) -> bool:
        """Return whether the type of a parameter is found from what is passed for it."""
        if self.is_open or self.declared is None:
            return self.is_open
        return self.declared.params[position].ty is None

    def _waits(self, solver: Solver, actual: Type, wanted: Type) -> bool:
        """Return whether to wait until one side is known: what a loop passes to itself is then
        compared with what came in, and a difference is blamed on the loop."""
        if solver.settling:
            return False
        actual, wanted = solver.shallow(actual), solver.shallow(wanted)
        return actual != wanted and isinstance(actual, TypeHole) and isinstance(wanted, TypeHole)

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        callee = solver.shallow(self.callee)
        if not isinstance(callee, FnType):
            return NotAFunction(self.span, show(solver.resolve(callee)))
        if len(callee.params) != len(self.types):
            return ArgumentCountMismatch(self.span, len(callee.params), len(self.types))
        actual = solver.resolve(self.types[self.failing])
        wanted = solver.resolve(callee.params[self.failing])
        why, is_open = str(clash), self.is_open
        places = (self.call, self.declared, self.failing)
        types = [solver.resolve(ty) for ty in self.types]
        return explain_argument(*places, actual, wanted, why, types, is_open=is_open)


def _elements(solver: Solver, ty: Type) -> Sequence[Type]:
    """Return the type of the elements of a list, as far as it is known."""
    element = element_of(solver.shallow(ty))
    return [] if element is None else [element]


@final
@dataclass(slots=True)
class JoinConstraint:
    """The arms of an `if` or `match` give one type; different sizes become a number."""

    result: Type
    arms: tuple[tuple[Type, Span], ...]

    @property
    def span(self) -> Span:
        """The place in the user's program."""
        return self.arms[0][1]

    def parts(self, solver: Solver) -> Sequence[JoinConstraint]:
        """Return a join for each field where the arms are tuples, with fields that are open: None
        in one place and a value in another are found for each by itself. Nothing for other arms."""
        heads = [solver.shallow(ty) for ty in (self.result, *(ty for ty, _ in self.arms))]
        known = [h for h in heads if not isinstance(h, TypeHole)]
        tuples = [h for h in known if isinstance(h, TupleType)]
        counts = {len(h.fields) for h in tuples}
        if len(tuples) < len(known) or len(counts) != 1 or 0 in counts:
            return ()
        is_whole = not any(isinstance(h, TypeHole) for h in heads[1:])
        fields = [solver.shallow(f) for h in tuples for f in h.fields]
        is_open = any(isinstance(f, TypeHole) for f in fields)
        if not (is_open if is_whole else solver.settling):
            return ()
        (count,) = counts
        result, *rows = (self._opened(solver, ty, count) for ty in heads)
        spans = [span for _, span in self.arms]
        return [
            JoinConstraint(made, tuple(zip(arms, spans, strict=True)))
            for made, *arms in zip(result, *rows, strict=True)
        ]

    @staticmethod
    def _opened(solver: Solver, ty: Type, count: int) -> Sequence[Type]:
        """Return the fields of a type that is a tuple, or becomes one."""
        ty = solver.shallow(ty)
        if isinstance(ty, TypeHole):
            made = TupleType(tuple(solver.fresh() for _ in range(count)))
            solver.unify(ty, made)
            return made.fields
        assert isinstance(ty, TupleType)
        return ty.fields

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        result = solver.shallow(self.result)
        heads = [solver.shallow(ty) for ty, _ in self.arms]
        known = [h for h in heads if not isinstance(h, TypeHole)]
        open_ = [h for h in heads if isinstance(h, TypeHole) and h != result]
        if open_ and not (solver.settling and known):
            if solver.settling:
                for hole in open_:
                    solver.unify(result, hole)
                return
            raise Stuck(open_[0])
        if not known:
            raise Stuck(result)
        joined = known[0]
        for other in known[1:]:
            joined = join(solver, joined, other)
        # What the other arms give may be no size, and no integer either.
        solver.flow(solver.widen(joined) if open_ else joined, result)
        for hole in open_:
            solver.unify(result, hole)

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        (first, first_span), (second, second_span) = self.arms[0], self.arms[-1]
        for ty, span in self.arms[1:]:
            if solver.resolve(ty) != solver.resolve(first):
                second, second_span = ty, span
                break
        first, second = solver.resolve(first), solver.resolve(second)
        if first_span == second_span:  # no branches of the program: an item of a list is read
            return ElementMismatch(self.span, show(first), show(second), str(clash))
        places = (first_span, show(first), second_span, show(second))
        return BranchMismatch(self.span, *places, str(clash), one_type(first, second))


@final
@dataclass(slots=True)
class FieldConstraint:
    """A tuple has a field."""

    value: Type
    index: int
    result: Type
    span: Span

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        value = solver.known(self.value)
        if not isinstance(value, TupleType) or not 0 <= self.index < len(value.fields):
            raise Clash("no such field")
        solver.unify(self.result, value.fields[self.index])

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        return NotATuple(self.span, self.index, show(solver.resolve(self.value)))
