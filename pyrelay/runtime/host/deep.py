"""Which units may call each other to any depth.

Nodes are the units and one more, the unknown callee: it stands for every function that is used as
a value, and a call of a function value is an edge to it. A unit is *deep* if it lies on a cycle, or
on a path from one cycle to another, or at the end of a long chain; deep units thread a budget of
depth through their calls and go over to the trampoline when it is spent. All others nest at most
`LONGEST_CHAIN` Python calls above and below them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .plan import Plan, Planned

LONGEST_CHAIN: Final = 50


def find_deep(plan: Plan) -> bool:
    """Mark the deep units of a plan. Gives whether calls of function values are deep too."""
    units = [p for p in plan.functions() if p.place is None]
    numbers = {p: i for i, p in enumerate(units)}
    unknown = len(units)
    edges: list[dict[int, None]] = [{} for _ in range(unknown + 1)]
    for planned in plan.functions():
        _add_edges(plan, planned, numbers, edges)
    cyclic, order = _components(edges)
    called_by_cycle = _reach(edges, cyclic)
    calls_cycle = _reach(_reversed(edges), cyclic)
    deep = [a and b for a, b in zip(called_by_cycle, calls_cycle, strict=True)]
    _mark_chains(edges, order, deep)
    if deep[unknown]:
        for unit in units:
            deep[numbers[unit]] = deep[numbers[unit]] or unit.escapes
    for unit in units:
        unit.is_deep = deep[numbers[unit]]
    return deep[unknown]


def _add_edges(
    plan: Plan,
    planned: Planned,
    numbers: dict[Planned, int],
    edges: list[dict[int, None]],
) -> None:
    unknown = len(edges) - 1
    if planned.calls_unknown:
        edges[numbers[plan.unit_of(planned)]][unknown] = None
    if planned.place is not None:
        return
    own = numbers[planned]
    if planned.owner is not None:
        # Who makes a function must be able to give it both forms if it is deep.
        edges[numbers[plan.unit_of(planned.owner)]][own] = None
    if planned.escapes:
        edges[unknown][own] = None
    for site in planned.sites:
        if planned.way_in(site) is not True:
            edges[numbers[plan.unit_of(site.caller)]][own] = None


def _components(edges: Sequence[dict[int, None]]) -> tuple[list[bool], list[int]]:
    """Give which nodes lie on a cycle, and all nodes with callees before callers (Tarjan)."""
    count = len(edges)
    index, low = [-1] * count, [0] * count
    on_stack, cyclic = [False] * count, [False] * count
    stack: list[int] = []
    order: list[int] = []
    visited = 0
    for root in range(count):
        work = [(root, iter(edges[root]))] if index[root] < 0 else []
        while work:
            node, rest = work[-1]
            if index[node] < 0:
                index[node] = low[node] = visited
                visited += 1
                stack.append(node)
                on_stack[node] = True
            child = next((c for c in rest if index[c] < 0 or on_stack[c]), None)
            if child is not None and index[child] < 0:
                work.append((child, iter(edges[child])))
                continue
            if child is not None:
                low[node] = min(low[node], index[child])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                _close(node, stack, on_stack, cyclic, edges, order)
    return cyclic, order


def _close(
    node: int,
    stack: list[int],
    on_stack: list[bool],
    cyclic: list[bool],
    edges: Sequence[dict[int, None]],
    order: list[int],
) -> None:
    members: list[int] = []
    while not members or members[-1] != node:
        members.append(stack.pop())
    for member in members:
        on_stack[member] = False
        cyclic[member] = len(members) > 1 or member in edges[member]
        order.append(member)


def _reach(edges: Sequence[dict[int, None]], start: Sequence[bool]) -> list[bool]:
    """Give the start nodes and all that edges lead to from them."""
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


def _mark_chains(edges: Sequence[dict[int, None]], order: Sequence[int], deep: list[bool]) -> None:
    """Mark the units from which a chain of plain calls would be too long."""
    height = [0] * len(edges)
    for node in order:
        if not deep[node]:
            height[node] = 1 + max((height[c] for c in edges[node]), default=0)
    for node, calls in enumerate(height):
        deep[node] = deep[node] or calls > LONGEST_CHAIN
