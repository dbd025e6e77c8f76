"""Messages without the names of sizes that the program does not name: those that annotations leave
open with `Any`, and those that only the running program knows."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import fields, is_dataclass, replace
from typing import Final

from ...diagnostics.diagnostic import Problem
from ...ir.types import ANY_DIM

_OPEN: Final = re.compile(rf"{ANY_DIM}\d+")


def plain(problem: Problem, running: Collection[str]) -> Problem:
    """Return a problem whose texts have `Any`, as annotations do, for the sizes in them that
    annotations leave open, or for the one that the running program finds. Several open ones are
    `Any`, `Any'` and so on; several found ones keep their names, which distinguish them."""
    if not is_dataclass(problem) or isinstance(problem, type):
        return problem
    values = {field.name: getattr(problem, field.name) for field in fields(problem)}
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    words = [w for text in texts.values() for w in re.findall(r"\w+", text)]
    sizes = list(dict.fromkeys(w for w in words if _OPEN.fullmatch(w)))
    found = {w for w in words if w in running}
    sizes += found if not sizes and len(found) == 1 else []
    if not sizes:
        return problem
    shown = {size: "Any" + "'" * place for place, size in enumerate(sizes)}
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, sizes))})\b")
    changed = {n: pattern.sub(lambda m: shown[m[0]], t) for n, t in texts.items()}
    return replace(problem, **changed)
