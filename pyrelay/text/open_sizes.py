"""Texts for users, without the names of sizes that the program does not name: those that
annotations leave open with `Any`, and those that only the running program knows."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from ..ir.types import ANY_DIM

_OPEN: Final = re.compile(rf"{ANY_DIM}\d+")


def with_any(texts: Sequence[str], running: Collection[str] = ()) -> list[str]:
    """Return texts that have `Any`, as annotations do, for the sizes in them that annotations leave
    open, and for those named in `running`. Several ones are `Any`, `Any'` and so on."""
    words = [word for text in texts for word in re.findall(r"\w+", text)]
    sizes = list(dict.fromkeys(w for w in words if w in running or _OPEN.fullmatch(w)))
    if not sizes:
        return list(texts)
    shown = {size: "Any" + "'" * place for place, size in enumerate(sizes)}
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, sizes))})\b")
    return [pattern.sub(lambda m: shown[m[0]], text) for text in texts]
