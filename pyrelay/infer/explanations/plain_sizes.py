"""Messages without the names of sizes that the program does not name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from ...diagnostics.diagnostic import Label, Problem
from ...text.open_sizes import with_any


def plain(problem: Problem, running: Collection[str] = ()) -> Problem:
    """Return a problem whose texts have `Any` for the sizes in them that annotations leave open, or
    that the running program finds."""
    if not is_dataclass(problem) or isinstance(problem, type):
        return problem
    values = {field.name: getattr(problem, field.name) for field in fields(problem)}
    shown = iter(with_any([*_texts(tuple(values.values()))], running))
    return replace(problem, **{name: _with_texts(value, shown) for name, value in values.items()})


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a field of a problem, those of labels included."""
    match value:
        case str():
            yield value
        case Label(text=text):
            yield text
        case tuple():
            for part in cast("tuple[Any, ...]", value):
                yield from _texts(part)
        case _:
            pass


def _with_texts(value: Any, texts: Iterator[str]) -> Any:
    """Return a field of a problem with other texts, in the same order."""
    match value:
        case str():
            return next(texts)
        case Label():
            return replace(value, text=next(texts))
        case tuple():
            return tuple(_with_texts(part, texts) for part in cast("tuple[Any, ...]", value))
        case _:
            return value
