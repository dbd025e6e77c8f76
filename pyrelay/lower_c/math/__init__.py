"""Vectors and functions of generated C."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from .arithmetic import ARITHMETIC
from .circular import CIRCULAR
from .elements import Element as Element
from .elements import element_name as element_name
from .elements import element_of as element_of
from .exponentials import EXPONENTIALS
from .intrinsics import INTRINSICS
from .library import LIBRARY
from .spaced import SPACED
from .storage import STORAGE
from .targets import AVX2 as AVX2
from .targets import AVX512 as AVX512
from .targets import NEON as NEON
from .targets import PORTABLE as PORTABLE
from .targets import TARGETS as TARGETS
from .targets import Target as Target
from .targets import host_target as host_target
from .targets import lanes_for as lanes_for
from .text import definitions_of, table_of

Mode: TypeAlias = Literal["fast", "exact"]

_BASE: Final = (*INTRINSICS, *STORAGE, *SPACED, *ARITHMETIC)
_TABLES: Final = {
    "fast": table_of(*_BASE, *LIBRARY, *EXPONENTIALS, *CIRCULAR),
    "exact": table_of(*_BASE, *LIBRARY),
}


def preamble(text: str, target: Target, mode: Mode = "fast") -> str:
    """Return the C that defines the vectors and functions that a text uses, to be put before it.

    Raises KeyError if the text calls a `relay_` function that does not exist for its elements.
    """
    return definitions_of(text, _TABLES[mode], target)


def bounds(mode: Mode) -> dict[str, dict[str, float]]:
    """Return the bounds of the errors of functions of real numbers, in units in the last place, by
    the name of the function and by `f32` and `f64`."""
    found: dict[str, dict[str, float]] = {}
    for (op, element), definition in sorted(_TABLES[mode].items()):
        if definition.ulp is not None:
            found.setdefault(op, {})[element] = definition.ulp
    return found
