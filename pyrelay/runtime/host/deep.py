"""Which units may call each other to any depth.

Nodes are the units and one more, the unknown callee: it stands for every function that is used as
a value, and a call of a function value is an edge to it. A unit is *deep* if it lies on a cycle, or
on a path from one cycle to another, or at the end of a long chain; deep units thread a budget of
depth through their calls and go over to the trampoline when it is spent. All others nest at most
`LONGEST_CHAIN` Python calls above and below them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from ...analysis.components import components
from ...kernels.function_plan import FunctionPlan, Planned

LONGEST_CHAIN: Final = 50


def find_deep(plan: FunctionPlan) -> bool:
    """Mark the deep units of a plan; return whether calls of function values are deep too."""
    units = [p for p in plan.functions() if p.place is None]
    numbers = {p: i for i, p in enumerate(units)}
    unknown = len(units)
    edges: list[dict[int, None]] = [{} for _ in range(unknown + 1)]
    for planned in plan.functions():
        _add_edges(plan, planned, numbers, edges)
    groups = components(dict(enumerate(map(tuple, edges))))
    cyclic = [False] * len(edges)
    for group in groups:
        for node in group:
            cyclic[node] = len(group) > 1 or node in edges[node]
    called_by_cycle = _reach(edges, cyclic)
    calls_cycle = _reach(_reversed(edges), cyclic)
    deep = [a and b for a, b in zip(called_by_cycle, calls_cycle, strict=True)]
    _mark_chains(edges, chain.from_iterable(groups), deep)
    if deep[unknown]:
        for unit in units:
            deep[numbers[unit]] = deep[numbers[unit]] or unit.escapes
    for unit in units:
        unit.is_deep = deep[numbers[unit]]
    return deep[unknown]


def _add_edges(
    plan: FunctionPlan, planned: Planned, numbers: dict[Planned, int], edges: list[dict[int, None]]
) -> None:
    unknown = len(edges) - 1
    if planned.calls_unknown:
        edges[numbers[plan.unit_of(planned)]][unknown] = None
    if planned.place is not None:
        return
    own = numbers[planned]
    if planned.owner is not None:
        # A unit that makes a function must be able to make both forms of a deep one.
        edges[numbers[plan.unit_of(planned.owner)]][own] = None
    if planned.escapes:
        edges[unknown][own] = None
    for site in planned.sites:
        if planned.way_in(site) is not True:
            edges[numbers[plan.unit_of(site.caller)]][own] = None


def _reach(edges: Sequence[dict[int, None]], start: Sequence[bool]) -> list[bool]:
    """Return the start nodes and all that edges lead to from them."""
    found = list(start)
    pending = [i for i, s in enumerate(start) if s]
    while pending:
        for child in edges[pending.pop()]:
            if not found[child]:
                found[child] = True
                pending.append(child)
    return found


def _reversed(edges: Sequence[dict[int, None]]) -> list[dict[int, None]]:
    turned: list[dict[int, None]] = [{} for _ in edges]
    for node, children in enumerate(edges):
        for child in children:
            turned[child][node] = None
    return turned


def _mark_chains(edges: Sequence[dict[int, None]], order: Iterable[int], deep: list[bool]) -> None:
    """Mark the units from which a chain of plain calls would be too long; in `order` callees come
    before callers."""
    height = [0] * len(edges)
    for node in order:
        if not deep[node]:
            height[node] = 1 + max((height[c] for c in edges[node]), default=0)
    for node, calls in enumerate(height):
        deep[node] = deep[node] or calls > LONGEST_CHAIN
