"""Where each variable of a program is used and where its value comes from: the facts that
`ownership` decides by.

Only uses of tensors and tuples of tensors are distinguished; everything else counts as `KEPT`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.calls.storage import makes_storage, overwritten_operand
from ...ir.expr import Call, Constructor, Expr, Function, If, LetBlock, Match, Tuple, TupleGet, Var
from ...ir.op import Op
from ...ir.traverse import children
from ...ir.types import SizeType
from ...kernels.function_plan import FunctionPlan, Planned
from .liveness import Liveness, Region


@final
@dataclass(frozen=True, slots=True)
class RegionPoint:
    """A position of a region."""

    live: Liveness
    region: Region
    position: int


class UseKind(Enum):
    """The kind of a use of a value."""

    READ = "an operand of an operator"
    MOVE = "passed on: to a function, into a tuple, or as the result"
    PART = "a field of it is taken"
    KEPT = "anything else, after which something may hold it"


@final
@dataclass(frozen=True, slots=True)
class Use:
    """One use; `index` is the field that a PART takes."""

    kind: UseKind
    place: RegionPoint
    index: int = 0


@final
@dataclass(frozen=True, slots=True)
class Fresh:
    """The value has storage of its own."""


@final
@dataclass(frozen=True, slots=True)
class Whole:
    """The value is that of a variable; `call` and `operand` say where it is an argument."""

    var: Var
    place: RegionPoint
    call: Call | None = None
    operand: int = 0


@final
@dataclass(frozen=True, slots=True)
class Fields:
    """The value is a tuple of these variables; None for anything else."""

    vars: tuple[Var | None, ...]
    place: RegionPoint


@final
@dataclass(frozen=True, slots=True)
class Part:
    """The value is a field of a variable."""

    var: Var
    index: int
    place: RegionPoint


@final
@dataclass(frozen=True, slots=True)
class Result:
    """The value is the result of a function."""

    function: Planned


@final
@dataclass(frozen=True, slots=True)
class Unknown:
    """The value may be aliased elsewhere; `call` and `operand` say where it is an argument."""

    call: Call | None = None
    operand: int = 0


ValueOrigin: TypeAlias = Fresh | Whole | Fields | Part | Result | Unknown
Target: TypeAlias = Var | Planned
"""A holder of a value: a variable, or a function for its result."""


@final
class Uses:
    """The uses and sources of all variables of the functions that a program reaches."""

    def __init__(self, plan: FunctionPlan, liveness: Callable[[Planned], Liveness]) -> None:
        self.of: Final[dict[Var, list[Use]]] = {}
        self.sources: Final[dict[Target, list[ValueOrigin]]] = {}
        self.views: Final[dict[Var, list[Var]]] = {}
        """For each variable those that may share its storage."""
        self.overwriting: Final[list[tuple[Call, RegionPoint]]] = []
        self.callers: Final[dict[Call, Planned]] = {}
        self._plan: Final = plan
        self._pending: Final[list[tuple[Expr, RegionPoint, Planned, Target]]] = []
        for planned in plan.functions():
            if planned is plan.entry or planned.escapes:
                for param in planned.function.params:
                    self._comes(param, Unknown())
            live = liveness(plan.unit_of(planned))
            place = RegionPoint(live, live.region(planned.function), 0)
            self._pending.append((planned.function.body, place, planned, planned))
        while self._pending:
            self._walk(*self._pending.pop())

    def _walk(self, body: Expr, place: RegionPoint, owner: Planned, target: Target) -> None:
        live, region, position = place.live, place.region, 0
        while isinstance(body, LetBlock):
            for binding in body.bindings:
                here = RegionPoint(live, region, position)
                if not isinstance(binding.value, Function):
                    self._value(binding.value, here, owner, binding.var)
                position += 1
            body = body.body
        here = RegionPoint(live, region, position)
        if isinstance(body, Var):
            self._use(body, UseKind.MOVE, here)
            self._comes(target, Whole(body, here))
        else:
            self._value(body, here, owner, target)

    def _value(self, value: Expr, place: RegionPoint, owner: Planned, target: Target) -> None:
        match value:
            case Call(callee=Op() as op, args=args):
                self._operator(op, value, args, place, target)
            case Tuple(fields):
                for field in _variables(fields):
                    self._use(field, UseKind.MOVE, place)
                found = tuple(f if isinstance(f, Var) else None for f in fields)
                self._comes(target, Fields(found, place))
            case TupleGet(Var() as var, index):
                self._use(var, UseKind.PART, place, index)
                self._comes(target, Part(var, index, place))
            case If(condition, then, otherwise):
                self._keep([condition], place)
                for arm, body in enumerate((then, otherwise)):
                    self._arm(value, arm, body, place, owner, target)
            case Match():
                self._match(value, place, owner, target)
            case Call(callee=Constructor(), args=args):
                self._keep(args, place)
                self._comes(target, Unknown())
            case Call():
                self._call(value, place, owner, target)
            case _:
                self._keep([value, *children(value)], place)
                self._comes(target, Unknown())

    def _match(self, node: Match, place: RegionPoint, owner: Planned, target: Target) -> None:
        self._keep([node.value], place)
        for i, clause in enumerate(node.clauses):
            self._arm(node, 2 * i, clause.body, place, owner, target)
            if clause.guard is not None:
                result = Var("guard", span=clause.guard.span)
                self._arm(node, 2 * i + 1, clause.guard, place, owner, result)

    def _operator(
        self, op: Op, call: Call, args: Iterable[Expr], place: RegionPoint, target: Target
    ) -> None:
        if self._plan.view.applies_to(call):
            # The result of an implementation may be an operand, or something it keeps.
            self._keep(args, place)
            self._comes(target, Unknown())
            return
        operands = _variables(args)
        for var in operands:
            self._use(var, UseKind.READ, place)
        if overwritten_operand(op) is not None:
            self.overwriting.append((call, place))
        if makes_storage(op):
            self._comes(target, Fresh())
            return
        self._comes(target, Unknown())
        if isinstance(target, Var) and not isinstance(target.ty, SizeType):
            for var in operands:
                self.views.setdefault(var, []).append(target)

    def _call(self, call: Call, place: RegionPoint, owner: Planned, target: Target) -> None:
        callee = self._plan.callee(call)
        if callee is None:
            self._keep(children(call), place)
            self._comes(target, Unknown())
            return
        self.callers[call] = owner
        self._comes(target, Result(callee))
        for k, (arg, param) in enumerate(zip(call.args, callee.function.params, strict=True)):
            if isinstance(arg, Var):
                self._use(arg, UseKind.MOVE, place)
                self._comes(param, Whole(arg, place, call, k))
            else:
                self._comes(param, Unknown(call, k))

    def _arm(
        self, node: Expr, arm: int, body: Expr, place: RegionPoint, owner: Planned, target: Target
    ) -> None:
        region = place.live.region(node, arm)
        self._pending.append((body, RegionPoint(place.live, region, 0), owner, target))

    def _keep(self, exprs: Iterable[Expr], place: RegionPoint) -> None:
        for var in _variables(exprs):
            self._use(var, UseKind.KEPT, place)

    def _use(self, var: Var, kind: UseKind, place: RegionPoint, index: int = 0) -> None:
        self.of.setdefault(var, []).append(Use(kind, place, index))

    def _comes(self, target: Target, source: ValueOrigin) -> None:
        self.sources.setdefault(target, []).append(source)


def _variables(exprs: Iterable[Expr]) -> list[Var]:
    return [e for e in exprs if isinstance(e, Var)]
