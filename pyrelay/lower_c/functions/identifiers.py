"""Identifiers of C."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final

_KEYWORDS: Final = """
    auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while bool true false asm typeof linux unix main NULL s waiting
    div abs labs fabs exp exp2 expm1 log log2 log1p sin cos tan asin acos atan sinh cosh tanh
    asinh acosh atanh erf erfc pow sqrt floor ceil trunc rint fmod copysign round gamma y0 y1 yn
    j0 j1 jn signal time clock index free malloc memcpy memset
"""
_RESERVED: Final = frozenset(_KEYWORDS.split())
"""Names that mean something in C, or in the code around values."""

_PREFIXES: Final = ("relay", "RELAY", "f_", "k_")
"""The prefixes of the names of the library, of functions and of kernels."""


@final
class Names:
    """Identifiers of C, each given once."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self._taken: Final = {*_RESERVED, *taken}

    def fresh(self, wish: str) -> str:
        """Return a name that nothing has, like the one wished for."""
        base = re.sub(r"\W+", "_", wish, flags=re.ASCII).strip("_") or "value"
        base = f"v_{base}" if base[0].isdigit() or base.startswith(_PREFIXES) else base
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name
