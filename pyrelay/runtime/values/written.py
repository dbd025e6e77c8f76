"""Values as text, written as Python shows them, at any depth."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ...prelude.values import List
from ...translate.data.unions import is_data_class


def value_text(value: Any) -> str:
    """Return a value as text, like `repr`: data with the names of its fields, tuples, lists.
    Classes that write themselves keep their own way."""
    found: list[str] = []
    pending: list[tuple[bool, Any]] = [(False, value)]
    while pending:
        is_text, current = pending.pop()
        if is_text:
            found.append(current)
            continue
        opened = _opened(current)
        if opened is None:
            found.append(repr(current))
            continue
        pending += reversed(opened)
    return "".join(found)


def _opened(value: Any) -> list[tuple[bool, Any]] | None:
    """Return the texts and parts that a value is written with; None for one without parts."""
    cls = type(value)
    if is_data_class(cls) and vars(cls).get("__dataclass_params__") and _is_generated(cls):
        named = [(f"{f.name}=", getattr(value, f.name)) for f in fields(cls) if f.repr]
        return _list(f"{cls.__qualname__}(", named, ")")
    if cls is tuple:
        return _list("(", [("", v) for v in value], ",)" if len(value) == 1 else ")")
    if cls is list:
        return _list("[", [("", v) for v in value], "]")
    if isinstance(value, List):
        items: list[tuple[str, Any]] = [("", v) for v in value]
        return _list("List([", items, "])")
    return None


def _list(start: str, named: list[tuple[str, Any]], end: str) -> list[tuple[bool, Any]]:
    found: list[tuple[bool, Any]] = [(True, start)]
    for place, (name, value) in enumerate(named):
        found += [(True, f"{', ' if place else ''}{name}"), (False, value)]
    return [*found, (True, end)]


def _is_generated(cls: Any) -> bool:
    """Return whether the class shows itself as dataclasses do."""
    own = vars(cls).get("__repr__")
    return own is not None and getattr(own, "__wrapped__", None) is not None
