"""Names that are unique in a function or a module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final


@final
class Names:
    """Hands out names that are unique in one function or module, the same ones every time."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._used: Final[dict[str, int]] = dict.fromkeys(taken, 1)

    def take(self, taken: Iterable[str]) -> None:
        """Keep names from being handed out."""
        for name in taken:
            self._used.setdefault(name, 1)

    def fresh(self, hint: str) -> str:
        """Return `hint`, or `hint` with the smallest number that makes it new."""
        if hint not in self._used:
            self._used[hint] = 1
            return hint
        count = self._used[hint]
        while (name := f"{hint}_{count}") in self._used:
            count += 1
        self._used[hint] = count + 1
        self._used[name] = 1
        return name
