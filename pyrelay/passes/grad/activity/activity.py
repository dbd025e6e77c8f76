"""Activity: which leaves depend on the parameters to differentiate, which reach the result.

A leaf is *varied* if a varied parameter can change it, through operators that have a derivative;
it is *useful* if it can change a useful leaf of the result. Only values that are both need
cotangents. Masks hold one bit per leaf. Within a group of recursive functions the masks of each
function are the union over all calls inside the group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from ....ir.expr import type_of
from ....ir.traverse import Steps
from ....ir.types import Type
from ..cotangents.cells import NO_CELLS, Cells
from ..cotangents.masks import Masks, join_masks
from ..instances import ones
from .useful import Useful
from .varied import Varied

if TYPE_CHECKING:
    from ..bodies import Source
    from ..cotangents.cells import CellUse
    from ..leaves import Leaves
    from .callgraph import CallGraph


@final
@dataclass(slots=True, eq=False)
class Flow:
    """What a group of recursive functions passes around: masks that come in (of parameters, or
    of results) and go out (of results, or of parameters), by function."""

    inward: dict[str, int] = field(default_factory=dict[str, int])
    outward: dict[str, int] = field(default_factory=dict[str, int])
    changed: bool = True

    def enter(self, name: str, mask: int) -> int:
        """Add to what comes into a function; give what is known to go out of it."""
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
        self,
        graph: CallGraph,
        leaves: Leaves,
        cell_use: CellUse,
        filled_cells: Cells = NO_CELLS,
        read_cells: Cells = NO_CELLS,
    ) -> None:
        self._graph: Final = graph
        self._leaves: Final = leaves
        self._varied: Final[dict[tuple[str, int], Flow]] = {}
        self._useful: Final[dict[tuple[str, int], Flow]] = {}
        self.cell_use: Final = cell_use
        self.filled_cells: Final = filled_cells
        """The cells whose content is taken to be varied."""
        self.read_cells: Final = read_cells
        """The cells whose content is taken to be useful."""
        self.filled: Final[set[Type]] = set()
        """The cells into which something varied was seen to be put."""
        self.read: Final[set[Type]] = set()
        """The cells from which a useful value was seen to be read."""

    def varied(self, name: str, mask: int) -> Steps[Flow]:
        """Return the flow from varied parameters of a function to results."""
        key = (name, mask)
        if key not in self._varied:
            self._varied[key] = yield self._solve(name, mask, forwards=True)
        return self._varied[key]

    def useful(self, name: str, mask: int) -> Steps[Flow]:
        """Return the flow from useful leaves of a result back to the parameters."""
        key = (name, mask)
        if key not in self._useful:
            self._useful[key] = yield self._solve(name, mask, forwards=False)
        return self._useful[key]

    def _solve(self, name: str, mask: int, *, forwards: bool) -> Steps[Flow]:
        flow = Flow()
        flow.enter(name, mask)
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

    def varied_in(self, source: Source, mask: int, flow: Flow) -> Steps[Masks]:
        """Return the varied leaves of every variable of a function, some parameters varied."""
        sweep = Varied(self, self._graph, self._leaves, source.name, flow)
        for param in source.function.params:
            width = self._leaves.width(type_of(param))
            sweep.masks[param] = mask & ones(width)
            mask >>= width
        result = yield sweep.body(source.body)
        flow.leave(source.name, result)
        return sweep.masks

    def useful_in(self, source: Source, mask: int, flow: Flow) -> Steps[Masks]:
        """Return the useful leaves of every variable of a function, part of its result useful."""
        sweep = Useful(self, self._graph, self._leaves, source.name, flow)
        sweep.use(source.body.result, mask)
        yield sweep.body(source.body)
        flow.leave(
            source.name,
            join_masks(self._leaves, source.function.params, sweep.masks),
        )
        return sweep.masks


def active_cells(
    graph: CallGraph, leaves: Leaves, cell_use: CellUse, name: str, varied: int, useful: int
) -> Steps[Cells]:
    """Return the cells through which a gradient flows: those that something varied reaches, and
    from which something useful is read; each set is the least that holds of itself."""
    every = cell_use.of(name)
    filled = read = NO_CELLS
    while every:
        activity = Activity(graph, leaves, cell_use, filled)
        yield activity.varied(name, varied)
        if activity.filled <= filled:
            break
        filled |= activity.filled
    while filled:
        activity = Activity(graph, leaves, cell_use, filled, read)
        yield activity.useful(name, useful)
        found = activity.read & filled
        if found <= read:
            break
        read |= found
    return read
