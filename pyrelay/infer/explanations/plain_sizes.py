"""Messages without the names of sizes that the program does not name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, is_dataclass, replace

from ...diagnostics.diagnostic import Problem
from ...text.open_sizes import with_any


def plain(problem: Problem, running: Collection[str] = ()) -> Problem:
    """Return a problem whose texts have `Any` for the sizes in them that annotations leave open, or
    that the running program finds."""
    if not is_dataclass(problem) or isinstance(problem, type):
        return problem
    values = {field.name: getattr(problem, field.name) for field in fields(problem)}
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    shown = with_any(list(texts.values()), running)
    return replace(problem, **dict(zip(texts, shown, strict=True)))
