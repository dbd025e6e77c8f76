"""Parameters that a body overwrites, and what may be in their storage until then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

from ...ir.dims import Dim
from ...ir.expr import Call, Expr, Var
from ...ir.traverse import free_vars
from ..groups import Domain
from .fitting import Cluster
from .nodes import (
    WRITES,
    Item,
    Role,
    gives_own_storage,
    has_bodies,
    is_check,
    mentioned,
    target_of,
    tuples_around,
)


@final
class Overwrites:
    """The parameters that the items of one body overwrite. What is evaluated as it stands may give
    a parameter back, also as a part of its result: who reads this reads the parameter."""

    def __init__(self, items: Sequence[Item], bindings: Mapping[Var, Expr]) -> None:
        self._bindings: Final = bindings
        self._first: Final[dict[Var, int]] = {}
        self._within: Final[dict[Var, dict[Var, None]]] = {}
        self._shown: Final[dict[Var, tuple[Var, ...]]] = {}
        self._stored: Final = _stored(items)
        for position, item in enumerate(items):
            if item.role not in WRITES:
                continue
            target = target_of(item)
            # What is made of a table is stored before the first of its rows changes.
            self._first.setdefault(target, position - (item.role is Role.ROWS))
            for var in tuples_around(target, bindings):
                self._within.setdefault(var, {})[target] = None

    def evaluated(self, item: Item, leaves: Iterable[Var]) -> None:
        """Note that an item is evaluated as it stands, given the leaves that it mentions."""
        if not self._first or gives_own_storage(item.value):
            return
        inside = free_vars(item.value) if has_bodies(item.value) else ()
        shown = (target for leaf in (*leaves, *inside) for target in self.seen_in(leaf))
        self._shown[item.var] = tuple(dict.fromkeys(shown))

    def seen_in(self, leaf: Var) -> tuple[Var, ...]:
        """Return the parameters that whoever reads a leaf may read."""
        if not self._first:
            return ()
        around = tuples_around(leaf, self._bindings)
        shown = (target for var in around for target in self._shown.get(var, ()))
        return tuple(dict.fromkeys((*self._within.get(leaf, ()), *shown)))

    def is_made_of(self, var: Var) -> bool:
        """Return whether the kernel that stores something over a parameter may compute it of a
        variable."""
        return var in self._stored

    def come_before(self, last: int, leaves: Iterable[Var]) -> bool:
        """Return whether a parameter that is seen in some leaves changes before a position."""
        return any(self._first[target] < last for leaf in leaves for target in self.seen_in(leaf))


@final
class UpdateOrder:
    """The order of updates and of the groups in which the program may stop. Those before an update
    come before its first store, and those behind it after its last."""

    def __init__(self) -> None:
        self._updates: Final[list[Cluster]] = []
        self._last_update = 0
        self._stops: Final[list[Cluster]] = []
        self._last_stop = 0

    def add(self, cluster: Cluster) -> None:
        """Note that a group overwrites a parameter."""
        self._updates.append(cluster)

    @property
    def last_update(self) -> int:
        """The order of the last group that overwrites a parameter."""
        return max((self._last_update, *(c.final.order for c in self._updates)))

    def come_before(self, cluster: Cluster) -> None:
        """Let a group come after all updates."""
        self._last_update = self.last_update
        for update in self._updates:
            update.final.precede(cluster)
        self._updates.clear()

    def stop_at(self, cluster: Cluster) -> None:
        """Note that the program may stop in a group, which comes after all updates."""
        self.come_before(cluster)
        self._stops.append(cluster)

    def last_stop(self) -> int:
        """Return the order of the last group in which the program may stop. None of these moves
        behind it any more."""
        if self._stops:
            self._last_stop = max((self._last_stop, *(c.final.order for c in self._stops)))
            fence = Cluster(self._last_stop, None, Domain((), ()))
            for cluster in self._stops:
                cluster.final.precede(fence)
            self._stops.clear()
        return self._last_stop


def known_places(items: Iterable[Item]) -> Mapping[Var, Dim]:
    """Return the numbers of rows that have been looked for, with how many rows there are."""
    checks = ((i.var, i.value) for i in items if is_check(i))
    return {var: value.attrs["rows"] for var, value in checks if isinstance(value, Call)}


def _stored(items: Sequence[Item]) -> frozenset[Var]:
    """Return what is stored over parameters, and what that may be computed of in one kernel."""
    found: set[Var] = set()
    for item in reversed(items):
        is_made = item.var in found and item.role in (Role.ELEMENT, Role.VIEW, Role.PART)
        if is_made or item.role in WRITES:
            found.update(mentioned(item.value))
    return frozenset(found)
