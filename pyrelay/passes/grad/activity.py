"""Activity: which leaves depend on the parameters to differentiate, which reach the result.

A leaf is *varied* if a varied parameter can change it, through operators that have a derivative;
it is *useful* if it can change a useful leaf of the result. Only values that are both need
cotangents. Masks hold one bit per leaf. Within a group of recursive functions the masks of each
function are the union over all calls inside the group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from ...ir.expr import Expr, type_of
from ...ir.traverse import Steps
from ...ir.types import Type
from .instances import ones
from .masks import Masks, join_masks
from .useful import Useful
from .varied import Varied

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .bodies import Source
    from .callgraph import CallGraph
    from .leaves import Leaves


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

    def __init__(self, graph: CallGraph, leaves: Leaves) -> None:
        self._graph: Final = graph
        self._leaves: Final = leaves
        self._varied: Final[dict[tuple[str, int], Flow]] = {}
        self._useful: Final[dict[tuple[str, int], Flow]] = {}
        self.tainted: Final[dict[Expr, Expr]] = {}
        """Reads of cells that hold varied values, with where the cell was made or written."""
        self.writes: Final[dict[str, dict[Type, Expr]]] = {}
        """For each function the types of cells made elsewhere into which it, or what it calls, puts
        varied values. Cells of one type are not told apart once they are passed around."""

    def varied(self, name: str, mask: int) -> Steps[Flow]:
        """Give the flow from varied parameters of a function to results."""
        key = (name, mask)
        if key not in self._varied:
            self._varied[key] = yield self._solve(name, mask, forwards=True)
        return self._varied[key]

    def pass_writes(self, name: str, writes: Mapping[Type, Expr]) -> bool:
        """Tell a function that cells it is given hold varied values; whether that is news to it."""
        known = self.writes.setdefault(name, {})
        news = {ty: write for ty, write in writes.items() if ty not in known}
        if news:
            known.update(news)
            for key in [k for k in self._varied if k[0] == name]:
                del self._varied[key]
        return bool(news)

    def useful(self, name: str, mask: int) -> Steps[Flow]:
        """Give the flow from useful leaves of a result back to the parameters."""
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
        """Give the varied leaves of every variable of a function, some parameters varied."""
        sweep = Varied(self, self._graph, self._leaves, source.name, flow)
        for param in source.function.params:
            width = self._leaves.width(type_of(param))
            sweep.masks[param] = mask & ones(width)
            mask >>= width
        result = yield sweep.body(source.body)
        flow.leave(source.name, result)
        return sweep.masks

    def useful_in(self, source: Source, mask: int, flow: Flow) -> Steps[Masks]:
        """Give the useful leaves of every variable of a function, part of its result useful."""
        sweep = Useful(self, self._graph, self._leaves, source.name, flow)
        sweep.use(source.body.result, mask)
        yield sweep.body(source.body)
        flow.leave(
            source.name,
            join_masks(self._leaves, source.function.params, sweep.masks),
        )
        return sweep.masks
