"""Which leaves depend on the varied parameters: one walk forwards over a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...ir.expr import (
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
from ...ir.op import Op
from ...ir.traverse import Steps
from ...ir.types import subtypes
from .bodies import subpatterns
from .instances import ones
from .masks import Masks, is_constant, join_masks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...ir.types import Type
    from .activity import Activity, Flow
    from .bodies import Body, Step
    from .callgraph import CallGraph
    from .leaves import Leaves


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
        self._cells: Final[dict[Expr, RefCreate]] = {}
        """Cells made in this function, by variable."""
        self._writes: Final = activity.writes.setdefault(name, {})
        self._tainted: Final[set[Expr]] = set()
        """Those of them into which something varied has been put."""

    def body(self, body: Body) -> Steps[int]:
        """Mark every variable of a body; give the mask of its result."""
        for step in body.steps:
            for part in step.expansion:
                self.masks[part.var] = self._simple(part.value) or 0
            mask = self.masks[step.var] if step.expansion else self._simple(step.value)
            if mask is None:
                mask = yield (self._branches(step) if step.arms else self._call(step.value))
            self.masks[step.var] = mask
            self._cell(step)
        return self._atom(body.result)

    def _cell(self, step: Step) -> None:
        """Follow varied values through a cell: what is read from it has no cotangent."""
        match step.value:
            case RefCreate(value) as made:
                self._cells[step.var] = made
                if self._atom(value):
                    self._tainted.add(step.var)
            case RefWrite(ref, value) if ref in self._cells and self._atom(value):
                self._tainted.add(ref)
            case RefWrite(ref, value) as write if self._atom(value):
                self._note({type_of(ref): write})
            case RefRead(ref) as read if ref in self._tainted or type_of(ref) in self._writes:
                # Were it useful, its cotangent would be lost: the sweep refuses that.
                self.masks[step.var] = ones(self._leaves.width(type_of(read)))
                place = self._cells.get(ref) or self._writes.get(type_of(ref))
                assert place is not None
                self._activity.tainted[read] = place
            case _:
                pass

    def _note(self, writes: Mapping[Type, Expr]) -> None:
        """Add cells that this function writes varied values into; a loop is then walked again."""
        for ty, write in writes.items():
            if ty not in self._writes:
                self._writes[ty] = write
                self._flow.changed = True

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
            case Call() | If() | Match():
                return None
            case _:
                return 0

    def _call(self, expr: Expr) -> Steps[int]:
        assert isinstance(expr, Call)
        assert isinstance(expr.callee, GlobalVar), "the program is first-order"
        name = expr.callee.name
        mask = join_masks(self._leaves, expr.args, self.masks)
        given = self._written_cells(expr)
        news = self._activity.pass_writes(name, given)
        if name in self._group:
            self._flow.changed = self._flow.changed or news
            self._note(self._activity.writes[name])
            return self._flow.enter(name, mask)
        if not mask and not given:
            return 0
        flow = yield self._activity.varied(name, mask)
        self._note(self._activity.writes[name])
        if not mask and flow.outward.get(name, 0):
            # Only through a cell does the result vary; were that useful, it would be lost.
            self._activity.tainted[expr] = next(iter(given.values()))
        return flow.outward.get(name, 0)

    def _written_cells(self, call: Call) -> dict[Type, Expr]:
        """Give the types of cells among the arguments that may hold varied values."""
        if not self._writes:
            return {}
        inside = (part for arg in call.args for part in subtypes(type_of(arg)))
        return {ty: self._writes[ty] for ty in inside if ty in self._writes}

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
