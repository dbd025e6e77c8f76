"""Call graphs: which global functions mention which, and those that are recursive or escape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final, NamedTuple, final

from ..ir.expr import Call, Function, GlobalVar
from ..ir.memo import remembered
from ..ir.module import Module
from ..ir.traverse import free_globals, post_order
from .components import components


@remembered
def callees(function: Function) -> tuple[str, ...]:
    """Return the names of the global functions that a function mentions, in order."""
    return free_globals(function)


class Mentions(NamedTuple):
    """How often a function mentions each global function, and how often it calls it directly."""

    all: Counter[str]
    calls: Counter[str]


@remembered
def mentions(function: Function) -> Mentions:
    """Return how often a function mentions and calls global functions."""
    found = Mentions(Counter(), Counter())
    if callees(function):
        for node in post_order(function.body):
            if isinstance(node, GlobalVar):
                found.all[node.name] += 1
            elif isinstance(node, Call) and isinstance(node.callee, GlobalVar):
                found.calls[node.callee.name] += 1
    return found


def reachable(functions: Mapping[str, Function], names: Iterable[str]) -> dict[str, None]:
    """Return functions and all that they mention, directly or through others, those that exist."""
    found: dict[str, None] = {}
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in found and name in functions:
            found[name] = None
            pending += reversed(callees(functions[name]))
    return found


@final
class CallGraph:
    """The call graph of functions by name."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions: Final = functions
        self.callees: Final = {
            name: tuple(callee for callee in callees(function) if callee in functions)
            for name, function in functions.items()
        }

    @cached_property
    def groups(self) -> list[list[str]]:
        """The functions that reach each other, group by group, callees before callers."""
        return components(self.callees)

    @cached_property
    def recursive(self) -> frozenset[str]:
        """The functions that reach themselves."""
        return frozenset(name for group in self.groups if self.is_cyclic(group) for name in group)

    def is_cyclic(self, group: list[str]) -> bool:
        """Return whether the functions of a group reach themselves."""
        return len(group) > 1 or group[0] in self.callees[group[0]]

    @cached_property
    def mentions(self) -> Mentions:
        """How often each function is mentioned and called."""
        found = Mentions(Counter(), Counter())
        for function in self._functions.values():
            own = mentions(function)
            found.all.update(own.all)
            found.calls.update(own.calls)
        return found

    @cached_property
    def escaping(self) -> frozenset[str]:
        """The functions that are used as values, so that not all calls of them are seen."""
        counts = self.mentions
        return frozenset(name for name, count in counts.all.items() if count > counts.calls[name])


@remembered
def call_graph(module: Module) -> CallGraph:
    """Return the call graph of a module."""
    return CallGraph(module.functions)
