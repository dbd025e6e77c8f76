"""Python identifiers for what a program names: readable, unique, the same ones every time."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from typing import Final, final

from ..ir.names import Names

_RESERVED: Final = (*keyword.kwlist, *keyword.softkwlist, *dir(builtins))


@final
class Identifiers:
    """Hands out identifiers that are new in one scope."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._given: Final[list[str]] = list(taken)
        self._names: Final = Names((*_RESERVED, *self._given))

    def fresh(self, hint: str) -> str:
        """Return an identifier like the hint that was not given before."""
        name = self._names.fresh(identifier(hint))
        self._given.append(name)
        return name

    def inside(self) -> Identifiers:
        """Return the identifiers of a scope inside, in which all given so far are taken."""
        return Identifiers(self._given)


def identifier(hint: str) -> str:
    """Return the hint as an identifier."""
    text = re.sub(r"\W+", "_", hint).strip("_")
    return text if text.isidentifier() else f"v_{text}".rstrip("_")
