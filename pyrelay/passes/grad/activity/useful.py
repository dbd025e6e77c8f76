"""Which leaves reach the useful part of the result: one walk backwards over a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

from ....ir.expr import (
    BindPattern,
    Call,
    Constructor,
    ConstructorPattern,
    Expr,
    GlobalVar,
    If,
    Match,
    Pattern,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGet,
    TuplePattern,
    Var,
    type_of,
)
from ....ir.op import Op
from ....ir.traverse import Steps
from ..bodies import subpatterns
from ..cotangents.masks import Masks, is_constant
from ..instances import ones

if TYPE_CHECKING:
    from ....ir.types import Type
    from ..bodies import Body, Step
    from ..leaves import Leaves
    from .activity import Activity, Flow
    from .callgraph import CallGraph


@final
class Useful:
    """One walk backwards over a function."""

    def __init__(
        self, activity: Activity, graph: CallGraph, leaves: Leaves, name: str, flow: Flow
    ) -> None:
        self._activity: Final = activity
        self._group: Final = frozenset(graph.group(name))
        self._leaves: Final = leaves
        self._flow: Final = flow
        self._touching: Final = activity.cell_use.touching(graph.source(name), activity.read_cells)
        self.masks: Final[Masks] = {}

    def use(self, expr: Expr, mask: int) -> None:
        """Mark leaves of an atom."""
        if isinstance(expr, Var) and mask:
            self.masks[expr] = self.masks.get(expr, 0) | mask & ones(
                self._leaves.width(type_of(expr))
            )

    def _use_all(self, atoms: Sequence[Expr], mask: int) -> None:
        """Mark the leaves of several atoms, the first atom's lowest."""
        for atom in atoms:
            self.use(atom, mask)
            mask >>= self._leaves.width(type_of(atom))

    def body(self, body: Body) -> Steps[None]:
        """Mark every variable that a useful one depends on."""
        for step in reversed(body.steps):
            mask = self.masks.get(step.var, 0)
            if mask and step.expansion:
                for part in reversed(step.expansion):
                    self._simple(part.value, self.masks.get(part.var, 0))
            elif isinstance(step.value, RefCreate | RefRead | RefWrite):
                self._cell(step.value, mask)
            elif (mask or step in self._touching) and not self._simple(step.value, mask):
                yield (self._branches if step.arms else self._call)(step, mask)

    def _simple(self, expr: Expr, mask: int) -> bool:
        """Mark what an expression without calls and branches uses; tell whether it is one."""
        match expr:
            case Var():
                self.use(expr, mask)
            case Tuple(fields):
                self._use_all(fields, mask)
            case TupleGet(value, index):
                self.use(value, mask << self._leaves.offset(type_of(value), index))
            case Call(Op() as op, args):
                if mask and not is_constant(op):
                    self._use_all(args, -1)
            case Call(Constructor(), args):
                self._use_all(args, -1 if mask else 0)
            case Call() | If() | Match():
                return False
            case _:
                pass
        return True

    def _cell(self, expr: RefCreate | RefRead | RefWrite, mask: int) -> None:
        """Note what is read from cells; what is put into those that are read is useful."""
        touched = self._activity.cell_use.touched(expr)
        assert touched is not None
        if isinstance(expr, RefRead):
            self._activity.read.update((touched,) if mask else ())
        elif touched in self._activity.read_cells:
            self.use(expr.value, -1)

    def _call(self, step: Step, mask: int) -> Steps[None]:
        expr = step.value
        assert isinstance(expr, Call)
        assert isinstance(expr.callee, GlobalVar), "the program is first-order"
        name = expr.callee.name
        if name in self._group:
            self._use_all(expr.args, self._flow.enter(name, mask))
            return
        flow = yield self._activity.useful(name, mask)
        self._use_all(expr.args, flow.outward.get(name, 0))

    def _branches(self, step: Step, mask: int) -> Steps[None]:
        for arm in step.arms:
            self.use(arm.body.result, mask)
            yield self.body(arm.body)
            if arm.pattern is not None:
                assert isinstance(step.value, Match)
                matched = step.value.value
                self.use(matched, self._pattern(arm.pattern, type_of(matched)))

    def _pattern(self, pattern: Pattern, ty: Type) -> int:
        """Return the leaves of a matched value that its pattern's variables make useful."""
        found = 0
        pending = [(pattern, ty, 0, True)]
        while pending:
            pattern, ty, shift, exact = pending.pop()
            match pattern:
                case BindPattern(var, inner):
                    mask = self.masks.get(var, 0)
                    found |= (mask if exact else int(mask != 0)) << shift
                    pending += () if inner is None else ((inner, ty, shift, exact),)
                case ConstructorPattern():
                    inside = subpatterns(pattern, ty, self._leaves)
                    pending += ((p, t, shift, False) for p, t in inside)
                case TuplePattern():
                    for part, part_type in subpatterns(pattern, ty, self._leaves):
                        pending.append((part, part_type, shift, exact))
                        shift += self._leaves.width(part_type) if exact else 0
                case _:
                    pass
        return found
