"""Activity: which leaves depend on the parameters to differentiate, which reach the result.

A leaf is *varied* if a varied parameter can change it, through operators that have a derivative;
it is *useful* if it can change a useful leaf of the result. Only values that are both need
cotangents. Masks hold one bit per leaf. Within a group of recursive functions the masks of each
function are the union over all calls inside the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final, final

from ...dataclass import dataclass
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
    Rule,
    Tuple,
    TupleGet,
    TuplePattern,
    Var,
    type_of,
)
from ...ir.op import Op
from ...ir.traverse import Steps
from ...ir.types import Type
from .bodies import Body, FunctionBody, Step, subpatterns
from .cotangents.cells import NO_CELLS, Cells
from .cotangents.masks import Masks, is_constant, join_masks, ones
from .ruled import rule_of

if TYPE_CHECKING:
    from .callgraph import CallGraph
    from .leaves import Leaves
    from .workspace import Workspace


@final
@dataclass(slots=True, eq=False)
class MaskFlow:
    """The masks of a group of recursive functions: those that come in (of parameters, or
    of results) and go out (of results, or of parameters), by function."""

    inward: dict[str, int] = field(default_factory=dict[str, int])
    outward: dict[str, int] = field(default_factory=dict[str, int])
    changed: bool = True

    def enter(self, name: str, mask: int) -> int:
        """Add to what comes into a function; return what is known to go out of it."""
        old = self.inward.get(name)
        if old is None or old | mask != old:
            self.inward[name] = (old or 0) | mask
            self.changed = True
        return self.outward.get(name, 0)

    def leave(self, name: str, mask: int) -> None:
        """Add to what goes out of a function."""
        old = self.outward.get(name, 0)
        if old | mask != old:
            self.outward[name] = old | mask
            self.changed = True


@final
class Activity:
    """The two analyses, over a whole call graph, each result computed once."""

    def __init__(
        self, space: Workspace, filled_cells: Cells = NO_CELLS, read_cells: Cells = NO_CELLS
    ) -> None:
        self._graph: Final = space.graph
        self._leaves: Final = space.leaves
        self._varied: Final[dict[tuple[str, int], MaskFlow]] = {}
        self._useful: Final[dict[tuple[str, int], MaskFlow]] = {}
        self.cell_use: Final = space.cell_use
        self.filled_cells: Final = filled_cells
        """The cells whose content is taken to be varied."""
        self.read_cells: Final = read_cells
        """The cells whose content is taken to be useful."""
        self.filled: Final[set[Type]] = set()
        """The cells into which something varied was seen to be put."""
        self.read: Final[set[Type]] = set()
        """The cells from which a useful value was seen to be read."""

    def varied(self, name: str, mask: int) -> Steps[MaskFlow]:
        """Return the flow from varied parameters of a function to results."""
        key = (name, mask)
        if key not in self._varied:
            self._varied[key] = yield self._solve(name, mask, forwards=True)
        return self._varied[key]

    def useful(self, name: str, mask: int) -> Steps[MaskFlow]:
        """Return the flow from useful leaves of a result back to the parameters."""
        key = (name, mask)
        if key not in self._useful:
            self._useful[key] = yield self._solve(name, mask, forwards=False)
        return self._useful[key]

    def _solve(self, name: str, mask: int, *, forwards: bool) -> Steps[MaskFlow]:
        flow = MaskFlow()
        flow.enter(name, mask)
        source = self._graph.source(name)
        rule = rule_of(source.function)
        if rule is not None:
            # Its rules do not distinguish leaves: each may depend on each.
            every = (source.body.result,) if forwards else source.function.params
            width = sum(self._leaves.width(type_of(e)) for e in every)
            is_open = mask and rule.rule is not Rule.STOP_GRADIENT
            flow.leave(name, ones(width) if is_open else 0)
            return flow
        while flow.changed:
            flow.changed = False
            for member in list(flow.inward):
                source = self._graph.source(member)
                if forwards:
                    yield self.varied_in(source, flow.inward[member], flow)
                else:
                    yield self.useful_in(source, flow.inward[member], flow)
            flow.changed = flow.changed and bool(self._graph.group(name))
        return flow

    def varied_in(self, source: FunctionBody, mask: int, flow: MaskFlow) -> Steps[Masks]:
        """Return the varied leaves of every variable of a function, some parameters varied."""
        sweep = Varied(self, self._graph, self._leaves, source.name, flow)
        for param in source.function.params:
            width = self._leaves.width(type_of(param))
            sweep.masks[param] = mask & ones(width)
            mask >>= width
        result = yield sweep.body(source.body)
        flow.leave(source.name, result)
        return sweep.masks

    def useful_in(self, source: FunctionBody, mask: int, flow: MaskFlow) -> Steps[Masks]:
        """Return the useful leaves of every variable of a function, part of its result useful."""
        sweep = Useful(self, self._graph, self._leaves, source.name, flow)
        sweep.use(source.body.result, mask)
        yield sweep.body(source.body)
        flow.leave(source.name, join_masks(self._leaves, source.function.params, sweep.masks))
        return sweep.masks


def active_cells(space: Workspace, name: str, varied: int, useful: int) -> Steps[Cells]:
    """Return the cells through which a gradient flows: those that something varied reaches, and
    from which something useful is read; each set is the least that holds of itself."""
    every = space.cell_use.of(name)
    filled = read = NO_CELLS
    while every:
        activity = Activity(space, filled)
        yield activity.varied(name, varied)
        if activity.filled <= filled:
            break
        filled |= activity.filled
    while filled:
        activity = Activity(space, filled, read)
        yield activity.useful(name, useful)
        found = activity.read & filled
        if found <= read:
            break
        read |= found
    return read


class _Walk:
    """One walk over a function, which finds the masks of its variables."""

    def __init__(
        self, activity: Activity, graph: CallGraph, leaves: Leaves, name: str, flow: MaskFlow
    ) -> None:
        self._activity: Final = activity
        self._group: Final = frozenset(graph.group(name))
        self._leaves: Final = leaves
        self._flow: Final = flow
        self.masks: Final[Masks] = {}


@final
class Varied(_Walk):
    """One walk forwards over a function."""

    def body(self, body: Body) -> Steps[int]:
        """Mark every variable of a body; return the mask of its result."""
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


@final
class Useful(_Walk):
    """One walk backwards over a function."""

    def __init__(
        self, activity: Activity, graph: CallGraph, leaves: Leaves, name: str, flow: MaskFlow
    ) -> None:
        super().__init__(activity, graph, leaves, name, flow)
        self._touching: Final = activity.cell_use.touching(graph.source(name), activity.read_cells)

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
        """Mark what an expression without calls and branches uses; return whether it is one."""
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
        """Record the cells that are read; values written to these are useful."""
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
