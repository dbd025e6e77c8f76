"""The table of implementations: which one a call of an operator with given keys gets.

Per operator a row, per key a column. An *exact* implementation stands for one operator and some
keys, a *catch-all* for one operator whatever the keys, a *fallback* for one key whatever the
operator. The table is one immutable value, replaced as a whole when something is registered, so
a result of a search in one is valid as long as the table is the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Final, final

from ..dataclass import dataclass
from ..ir.op import Op
from ..registry import Removable
from .keys import Key

Implementation = Callable[..., Any]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Registration(Removable):
    """One implementation in the table.

    `operator` is None for a fallback; `keys` is empty for a catch-all. With `boxed` it is
    called with the call as one `OperatorCall`, not with operands and attributes. `place` is where
    it was written.
    """

    operator: Op | None
    keys: tuple[Key, ...]
    implementation: Implementation
    boxed: bool
    place: str

    def remove(self) -> None:
        """Take it out of the table; nothing happens if it is not there."""
        REGISTRY.change(lambda found: [r for r in found if r is not self])

    @property
    def name(self) -> str:
        """The name of the implementation."""
        return getattr(self.implementation, "__name__", type(self.implementation).__name__)

    def __repr__(self) -> str:
        operator = "any operator" if self.operator is None else self.operator.name
        return f"<{self.name}: {operator} for {shown(self.keys)}>"


def shown(keys: Sequence[Key]) -> str:
    """Return keys as text."""
    return ", ".join(k.name for k in keys) or "any keys"


@final
class Table(Sequence[Registration]):
    """All registrations, in the order in which they were made."""

    def __init__(self, registrations: Iterable[Registration] = ()) -> None:
        self.registrations: Final = tuple(registrations)
        self._chains: Final[dict[tuple[Op, tuple[Key, ...]], tuple[Registration, ...]]] = {}

    def __getitem__(self, index: Any) -> Any:
        return self.registrations[index]

    def __len__(self) -> int:
        return len(self.registrations)

    def __str__(self) -> str:
        rows = [("operator", "keys", "implementation", "")]
        for r in self.registrations:
            operator = "any" if r.operator is None else r.operator.name
            keys = ", ".join(k.name for k in r.keys) or "any"
            rows.append((operator, keys, r.name, r.place))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join(lines)

    __repr__ = __str__

    @cached_property
    def by_operator(self) -> dict[Op | None, tuple[Registration, ...]]:
        """The registrations of each operator that has any; the fallbacks under None."""
        found: dict[Op | None, list[Registration]] = {}
        for registration in self.registrations:
            found.setdefault(registration.operator, []).append(registration)
        return {op: tuple(rs) for op, rs in found.items()}

    def chain(self, op: Op, keys: tuple[Key, ...]) -> tuple[Registration, ...]:
        """Return the implementations for a call whose keys these are, in the order in which they
        are asked: the first is called, and each may call the next.

        The keys of a call are asked one after another. At each, an exact implementation comes
        before a fallback; of two exact ones, that for the key that is asked first, then that for
        more keys. A catch-all comes after every exact implementation and before every fallback.
        """
        found = self._chains.get((op, keys))
        if found is None:
            found = self._chains[op, keys] = self._chain(op, keys)
        return found

    def _chain(self, op: Op, keys: tuple[Key, ...]) -> tuple[Registration, ...]:
        own = self._applying(op, keys)
        fallbacks = self._applying(None, keys)
        exact = [r for r in own if r.keys]
        catch_all = [r for r in own if not r.keys]
        if catch_all:
            exact.sort(key=lambda r: _rank(r, keys))
            fallbacks.sort(key=lambda r: _rank(r, keys))
            return (*exact, *catch_all, *fallbacks)
        return tuple(sorted((*exact, *fallbacks), key=lambda r: _place(r, keys)))

    def _applying(self, op: Op | None, keys: tuple[Key, ...]) -> list[Registration]:
        have = frozenset(keys)
        return [r for r in self.by_operator.get(op, ()) if have.issuperset(r.keys)]


def _rank(registration: Registration, keys: tuple[Key, ...]) -> tuple[bool, ...]:
    """Order by the first key that one names and the other does not."""
    return tuple(key not in registration.keys for key in keys)


def _place(registration: Registration, keys: tuple[Key, ...]) -> tuple[int, bool, tuple[bool, ...]]:
    """Order by the first key, then exact before fallback, then by the other keys."""
    first = min(map(keys.index, registration.keys))
    return first, registration.operator is None, _rank(registration, keys)


@final
class Registry:
    """The table of the process. Tables are replaced, never changed."""

    def __init__(self) -> None:
        self.table: Table = Table()
        self._lock: Final = Lock()

    def change(self, edit: Callable[[tuple[Registration, ...]], Iterable[Registration]]) -> None:
        """Put another table in the place of this one. What `edit` raises leaves it as it was."""
        with self._lock:
            edited = tuple(edit(self.table.registrations))
            if edited != self.table.registrations:
                self.table = Table(edited)


REGISTRY: Final = Registry()
