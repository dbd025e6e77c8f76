"""Values as text: as Python shows them, at any depth, and in the words of annotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final, cast

import numpy as np
import torch

from ...prelude.values import List, Present
from ...translate.source.unions import is_data_class

_LONG: Final = 128
"""How many bits an integer may have that an error shows."""
_SHOWN: Final = 4
"""How many items of a tuple or list an error shows."""


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


def describe(value: Any, levels: int = 8) -> str:
    """Return a value in the words of the annotations, as an error shows it, down to some levels of
    tuples and lists: a list may contain itself."""
    if isinstance(value, torch.Tensor | np.ndarray):
        name = str(value.dtype).removeprefix("torch.")
        names = {"float32": "Float", "int64": "Int", "bool": "Bool"}
        shape = ", ".join(str(n) for n in value.shape)
        comma = "," if len(value.shape) == 1 else ""
        return f"{_kind(value)}Tensor[{names.get(name, name)}, ({shape}{comma})]"
    if isinstance(value, int) and value.bit_length() > _LONG:
        return f"an int of {value.bit_length()} bits"
    if isinstance(value, str | bool | int | float):
        return f"the {type(value).__name__} {value!r}"
    if isinstance(value, tuple | list) and levels:
        return _describe_items(cast("Sequence[Any]", value), levels - 1)
    if value is None or isinstance(value, Present):
        return repr(value)
    name = getattr(value, "__name__", None)
    if getattr(value, "__relay__", None) is not None and name is not None:
        return f"the function `{name}`"
    return f"a {type(value).__name__}"


def _kind(value: torch.Tensor | np.ndarray[Any, Any]) -> str:
    """Return a phrase for tensors that are stored in another way than as all of their elements."""
    if isinstance(value, torch.Tensor):
        is_dense = value.layout is torch.strided
        return "" if is_dense else f"a {str(value.layout).removeprefix('torch.')} "
    return "a masked " if isinstance(value, np.ma.MaskedArray) else ""


def _describe_items(items: Sequence[Any], levels: int) -> str:
    """Return a tuple with what is in it, the first few; a list too, unless it is one of numbers."""
    if isinstance(items, list) and isinstance(items[0] if items else 0, bool | int | float):
        return "a list"
    is_number = [isinstance(v, str | bool | int | float) for v in items[:_SHOWN]]
    shown = [
        type(v).__name__ if n else describe(v, levels)
        for v, n in zip(items[:_SHOWN], is_number, strict=True)
    ]
    more = ["..."] if len(items) > _SHOWN else []
    return f"{type(items).__name__}[{', '.join([*shown, *more])}]"
