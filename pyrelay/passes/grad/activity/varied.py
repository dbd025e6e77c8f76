"""Which leaves depend on the varied parameters: one walk forwards over a function."""

from __future__ import annotations

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
from ..cotangents.masks import Masks, is_constant, join_masks
from ..instances import ones

if TYPE_CHECKING:
    from ....ir.types import Type
    from ..bodies import Body, Step
    from ..leaves import Leaves
    from .activity import Activity, Flow
    from .callgraph import CallGraph


@final
class Varied:
    """One walk forwards over a function."""

    def __init__(
        self, activity: Activity, graph: CallGraph, leaves: Leaves, name: str, flow: Flow
    ) -> None:
        self._activity: Final = activity
        self._group: Final = frozenset(graph.group(name))
        self._leaves: Final = leaves
        self._flow: Final = flow
        self.masks: Final[Masks] = {}

    def body(self, body: Body) -> Steps[int]:
        """Mark every variable of a body; give the mask of its result."""
        for step in body.steps:
            for part in step.expansion:
                self.masks[part.var] = self._simple(part.value) or 0
            mask = self.masks[step.var] if step.expansion else self._simple(step.value)
            if mask is None:
                mask = yield (self._branches(step) if step.arms else self._call(step.value))
            self.masks[step.var] = mask
            self._note_cell(step.value)
        return self._atom(body.result)

    def _note_cell(self, value: Expr) -> None:
        """Note cells into which something varied is put."""
        match value:
            case RefCreate(content) | RefWrite(_, content) if self._atom(content):
                touched = self._activity.cell_use.touched(value)
                assert touched is not None
                self._activity.filled.add(touched)
            case _:
                pass

    def _atom(self, expr: Expr) -> int:
        return self.masks.get(expr, 0) if isinstance(expr, Var) else 0

    def _simple(self, expr: Expr) -> int | None:
        match expr:
            case Var():
                return self._atom(expr)
            case Tuple(fields):
                return join_masks(self._leaves, fields, self.masks)
            case TupleGet(value, index):
                width = self._leaves.width(type_of(expr))
                skipped = self._leaves.offset(type_of(value), index)
                return self._atom(value) >> skipped & ones(width)
            case Call(Op() as op, args):
                varied = not is_constant(op) and any(map(self._atom, args))
                return ones(self._leaves.width(type_of(expr))) if varied else 0
            case Call(Constructor(), args):
                varied = any(map(self._atom, args))
                return ones(self._leaves.width(type_of(expr))) if varied else 0
            case RefRead():
                varied = self._activity.cell_use.touched(expr) in self._activity.filled_cells
                return ones(self._leaves.width(type_of(expr))) if varied else 0
            case Call() | If() | Match():
                return None
            case _:
                return 0

    def _call(self, expr: Expr) -> Steps[int]:
        assert isinstance(expr, Call)
        assert isinstance(expr.callee, GlobalVar), "the program is first-order"
        name = expr.callee.name
        mask = join_masks(self._leaves, expr.args, self.masks)
        if name in self._group:
            return self._flow.enter(name, mask)
        if not mask and self._activity.filled_cells.isdisjoint(self._activity.cell_use.of(name)):
            return 0
        flow = yield self._activity.varied(name, mask)
        return flow.outward.get(name, 0)

    def _branches(self, step: Step) -> Steps[int]:
        mask = 0
        for arm in step.arms:
            if arm.pattern is not None:
                assert isinstance(step.value, Match)
                matched = step.value.value
                self._pattern(arm.pattern, type_of(matched), self._atom(matched))
            mask |= yield self.body(arm.body)
        return mask

    def _pattern(self, pattern: Pattern, ty: Type, mask: int) -> None:
        pending = [(pattern, ty, mask)]
        while pending:
            pattern, ty, mask = pending.pop()
            match pattern:
                case BindPattern(var, inner):
                    self.masks[var] = mask & ones(self._leaves.width(ty))
                    pending += () if inner is None else ((inner, ty, mask),)
                case ConstructorPattern():
                    # -1 has every bit: all leaves inside a varied value are varied.
                    inside = subpatterns(pattern, ty, self._leaves)
                    pending += ((p, t, -1 if mask else 0) for p, t in inside)
                case TuplePattern():
                    for part, part_type in subpatterns(pattern, ty, self._leaves):
                        pending.append((part, part_type, mask))
                        mask >>= self._leaves.width(part_type)
                case _:
                    pass
