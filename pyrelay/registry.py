"""Registries of what a third party adds to the package while it runs.

What is registered is one immutable tuple, replaced as a whole. So whoever has it can see by
identity whether what was derived from it still holds, and readers need no lock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from threading import Lock
from types import TracebackType
from typing import Final, Generic, Self, TypeVar, final

T = TypeVar("T")


@final
class Registry(Generic[T]):
    """Registered items, in the order in which they were added."""

    def __init__(self) -> None:
        self.all: tuple[T, ...] = ()
        """The items now: one object as long as they stay the same."""
        self._lock: Final = Lock()

    def change(self, edit: Callable[[tuple[T, ...]], Iterable[T]]) -> None:
        """Replace the items. An exception of `edit` leaves them as they were."""
        with self._lock:
            edited = tuple(edit(self.all))
            if edited != self.all:
                self.all = edited

    def add(self, item: T) -> None:
        """Add an item behind all others."""
        self.change(lambda found: (*found, item))

    def remove(self, item: T) -> None:
        """Remove an item; nothing happens if it is not there."""
        self.change(lambda found: [i for i in found if i is not item])


class Removable(ABC):
    """A registration that can be taken back; with `with`, it lasts for the block."""

    @abstractmethod
    def remove(self) -> None:
        """Take the registration back; nothing happens if that is done."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()
