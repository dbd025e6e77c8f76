"""Operators whose calls stay as they are written.

An operator with an implementation from outside may give what its own body does not, to the last
bits at least. Passes that put something else in the place of a call, or its value, leave such calls
alone, so that all executors run the same implementations. A pure call that nobody needs, or that
was made before, still goes: an implementation has the effects that its operator declares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..ir.op import Op

Fixed: TypeAlias = Callable[[Op], bool]
"""Tells whether calls of an operator stay as they are."""


def nothing_fixed(_: Op) -> bool:
    """Say that calls of every operator may be replaced."""
    return False
