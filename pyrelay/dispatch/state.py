"""The keys that the code around a call includes and excludes: a contextvar, so a thread starts with
nothing and an asyncio task with what its parent had.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

from ..dataclass import dataclass
from .keys import Key, key_of

if TYPE_CHECKING:
    from .registry import Registration


@final
@dataclass(frozen=True, slots=True)
class State:
    """The keys that calls have besides those of their arguments, and those that they have not.

    `included` has the last one first. `running` are the implementations that run around the call:
    none of them is chosen again for what it calls itself, so none recurs for ever.
    """

    included: tuple[Key, ...] = ()
    excluded: frozenset[Key] = frozenset()
    running: frozenset[Registration] = frozenset()

    def inside(self, registration: Registration) -> State:
        """Return the state in which an implementation runs that was chosen here."""
        return State(self.included, self.excluded, self.running | {registration})


STATE: Final[ContextVar[State]] = ContextVar("pyrelay_dispatch", default=State())  # noqa: B039


@contextmanager
def include(*keys: Any) -> Generator[None]:
    """Add keys to those of every operator call in the block, those of compiled programs included.

    The keys of the innermost block are asked first. Raises CheckError for what is no key.
    """
    state = STATE.get()
    new = tuple(key_of(k) for k in reversed(keys))
    rest = tuple(k for k in state.included if k not in new)
    token = STATE.set(replace(state, included=(*new, *rest)))
    try:
        yield
    finally:
        STATE.reset(token)


@contextmanager
def exclude(*keys: Any) -> Generator[None]:
    """Take keys from every operator call in the block, whatever they come from: of a key that is
    included and excluded, the call does not have it. Raises CheckError for what is no key."""
    state = STATE.get()
    excluded = state.excluded | {key_of(k) for k in keys}
    token = STATE.set(replace(state, excluded=excluded))
    try:
        yield
    finally:
        STATE.reset(token)
