"""Strongly connected components of a call graph, callees before callers (Tarjan, iterative)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar

Node = TypeVar("Node", bound=Hashable)


def components(graph: Mapping[Node, Sequence[Node]]) -> list[list[Node]]:
    """Return the groups of nodes that reach each other, each group after those it points to.

    Within a group nodes keep the order of `graph`.
    """
    search = _Search(graph)
    for root in graph:
        if root not in search.index:
            search.visit(root)
    return search.found


class _Search(Generic[Node]):
    """One depth-first search, with its own stack."""

    def __init__(self, graph: Mapping[Node, Sequence[Node]]) -> None:
        self.index: Final[dict[Node, int]] = {}
        self.found: Final[list[list[Node]]] = []
        self._graph: Final = graph
        self._order: Final = {node: i for i, node in enumerate(graph)}
        self._low: Final[dict[Node, int]] = {}
        self._open: Final[dict[Node, None]] = {}
        """Nodes visited whose group is not known yet, in order of visit."""

    def visit(self, root: Node) -> None:
        """Find all groups that can be reached from a node not visited before."""
        path: list[tuple[Node, Iterator[Node]]] = [(root, self._enter(root))]
        while path:
            node, targets = path[-1]
            target = self._next(node, targets)
            if target is not None:
                path.append((target, self._enter(target)))
                continue
            path.pop()
            if self._low[node] == self.index[node]:
                self._close(node)
            if path:
                above = path[-1][0]
                self._low[above] = min(self._low[above], self._low[node])

    def _enter(self, node: Node) -> Iterator[Node]:
        self.index[node] = self._low[node] = len(self.index)
        self._open[node] = None
        return iter(self._graph[node])

    def _next(self, node: Node, targets: Iterator[Node]) -> Node | None:
        """Return the next target that has not been visited."""
        for target in targets:
            if target not in self.index:
                return target
            if target in self._open:
                self._low[node] = min(self._low[node], self.index[target])
        return None

    def _close(self, node: Node) -> None:
        group: list[Node] = []
        while node in self._open:
            group.append(self._open.popitem()[0])
        self.found.append(sorted(group, key=self._order.__getitem__))
