"""Messages without the names that inference gives to sizes that only the running program knows."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import fields, is_dataclass, replace

from ...diagnostics.diagnostic import Problem


def plain(problem: Problem, running: Collection[str]) -> Problem:
    """Return a problem whose texts have `Any`, as annotations do, for the one size in them that the
    running program finds. Several such sizes keep their names, which distinguish them."""
    if not running or not is_dataclass(problem) or isinstance(problem, type):
        return problem
    values = {field.name: getattr(problem, field.name) for field in fields(problem)}
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    mentioned = {w for text in texts.values() for w in re.findall(r"\w+", text) if w in running}
    if len(mentioned) != 1:
        return problem
    (size,) = mentioned
    changed = {n: re.sub(rf"\b{size}\b", "Any", t) for n, t in texts.items() if size in t}
    return replace(problem, **changed)
