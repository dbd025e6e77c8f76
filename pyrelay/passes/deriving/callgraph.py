"""Who calls whom among first-order functions: groups of mutual recursion, loops, threaded
parameters.

A loop is a function with a call of itself in tail position. A parameter is threaded when every
recursive call passes on a threaded parameter of the caller for it, unchanged: weights, sizes, the
tensor that a loop indexes. Its cotangent is accumulated through the backward function instead of
being made anew by each call, and its value is passed to it instead of being saved by each call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from ...ir.expr import Call, Function, Var
from ...ir.traverse import run
from ...ir.types import as_arguments
from .bodies import Body, FunctionBody, Reader, Step, callee_name
from .ruled import rule_of

if TYPE_CHECKING:
    from .leaves import Leaves
    from .store import Store


MAX_TAIL: Final = 10_000
"""How many branches, counted from each end of a loop's body, its forward function may wrap what it
saves in. A body with more is differentiated as any recursive function: its code stays linear."""


@final
class CallGraph:
    """The functions of the store as sources, with their groups."""

    def __init__(self, store: Store, leaves: Leaves) -> None:
        self._store: Final = store
        self._leaves: Final = leaves
        self._sources: Final[dict[str, FunctionBody]] = {}
        self._groups: Final[dict[str, tuple[str, ...]]] = {}
        self._threaded: Final[dict[str, frozenset[int]]] = {}
        self._ends: Final[dict[str, dict[Body, tuple[bool, bool]]]] = {}

    def source(self, name: str) -> FunctionBody:
        """Return a function, read."""
        found = self._sources.get(name)
        if found is None:
            reader = Reader(self._leaves, self._store.opaque)
            function = self._store.functions[name]
            if rule_of(function) is not None:
                found = _unread(name, function)
            else:
                found = run(reader.read(name, function))
            self._sources[name] = found
        return found

    def group(self, name: str) -> tuple[str, ...]:
        """Return the functions that call each other around this one; empty if it is not
        recursive."""
        if name not in self._groups:
            self._find_groups(name)
        return self._groups[name]

    def threaded(self, name: str) -> frozenset[int]:
        """Return the indices of the threaded parameters; none if the function is not recursive."""
        if name not in self._threaded:
            self._find_threaded(self.group(name) or (name,))
        return self._threaded[name]

    def is_loop(self, name: str) -> bool:
        """Return whether the function calls itself in tail position, at its own sizes, and can also
        end. What a loop keeps of its iterations is a list, so all of it has one type."""
        body = self.source(name).body
        again, leave = self.ends(name, body)
        return again and leave and _tail_size(body) <= MAX_TAIL and self._keeps_sizes(name)

    def _keeps_sizes(self, name: str) -> bool:
        own = as_arguments(self.source(name).function.type_params)
        return all(
            not isinstance(step.value, Call) or step.value.type_args in ((), own)
            for step, callee in self.calls(name)
            if callee == name and step.tail
        )

    def ends(self, name: str, body: Body) -> tuple[bool, bool]:
        """Return whether a body in tail position can end in a call of the function itself, and
        whether it can end otherwise."""
        if name not in self._ends:
            self._ends[name] = _ends(name, self.source(name).body)
        return self._ends[name][body]

    def calls(self, name: str) -> Iterator[tuple[Step, str]]:
        """Return the calls of global functions inside a function."""
        for step in all_steps(self.source(name).body):
            callee = callee_name(step.value)
            if callee is not None:
                yield step, callee

    def _find_groups(self, root: str) -> None:
        graph = self._store.graph(root)
        for group in graph.groups:
            for name in group:
                self._groups.setdefault(name, tuple(group) if graph.is_cyclic(group) else ())

    def _find_threaded(self, group: tuple[str, ...]) -> None:
        if not self.group(group[0]):
            self._threaded[group[0]] = frozenset()
            return
        found = {name: set(range(len(self.source(name).function.params))) for name in group}
        changed = True
        while changed:
            changed = False
            for caller in group:
                for step, callee in self.calls(caller):
                    if callee in found and self._narrow(found, caller, step, callee):
                        changed = True
        self._threaded.update((name, frozenset(kept)) for name, kept in found.items())

    def _narrow(self, found: dict[str, set[int]], caller: str, step: Step, callee: str) -> bool:
        """Drop the parameters of the callee for which this call passes something of its own."""
        params = self.source(caller).function.params
        assert isinstance(step.value, Call)
        itself = step.tail and callee == caller
        dropped = False
        for index, arg in enumerate(step.value.args):
            if index not in found[callee]:
                continue
            passed = params.index(arg) if isinstance(arg, Var) and arg in params else -1
            if passed not in found[caller] or (itself and passed != index):
                found[callee].discard(index)
                dropped = True
        return dropped


def _unread(name: str, function: Function) -> FunctionBody:
    """Return a ruled function: all that is known of it is its result."""
    result = Var("result", function.result, span=function.span)
    return FunctionBody(name, function, Body((), result))


def _ends(name: str, root: Body) -> dict[Body, tuple[bool, bool]]:
    """Return for each body in tail position whether it can end in a call of the function, and
    whether it can end otherwise."""
    order = [root]
    for body in order:
        if body.steps and body.steps[-1].tail:
            order += (arm.body for arm in body.steps[-1].arms)
    found: dict[Body, tuple[bool, bool]] = {}
    for body in reversed(order):
        last = body.steps[-1] if body.steps and body.steps[-1].tail else None
        if last is None or not last.arms:
            again = last is not None and callee_name(last.value) == name
            found[body] = (again, not again)
            continue
        inside = [found[arm.body] for arm in last.arms]
        found[body] = (any(a for a, _ in inside), any(leave for _, leave in inside))
    return found


def _tail_size(root: Body) -> int:
    """Return the sum, over the ends of a body in tail position, of the branches above each."""
    total = 0
    pending = [(root, 0)]
    while pending:
        body, depth = pending.pop()
        last = body.steps[-1] if body.steps and body.steps[-1].tail else None
        if last is None or not last.arms:
            total += depth
        else:
            pending += ((arm.body, depth + 1) for arm in last.arms)
    return total


def all_steps(body: Body) -> Iterator[Step]:
    """Return every step of a body and of the branches inside."""
    pending = [body]
    while pending:
        body = pending.pop()
        for step in body.steps:
            yield step
            pending += (arm.body for arm in step.arms)
