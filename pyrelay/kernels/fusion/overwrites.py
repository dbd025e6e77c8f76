"""Parameters that a body overwrites, and what may be in their storage until then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

from ...ir.expr import Expr, Var
from ...ir.traverse import free_vars
from .nodes import (
    WRITES,
    Item,
    Role,
    gives_own_storage,
    has_bodies,
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

    def come_before(self, last: int, leaves: Iterable[Var]) -> bool:
        """Return whether a parameter that is seen in some leaves changes before a position."""
        return any(self._first[target] < last for leaf in leaves for target in self.seen_in(leaf))
