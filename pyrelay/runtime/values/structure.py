"""The tensors in host values whose types are not at hand: in tuples and instances of dataclasses.

A shared part counts at each place where it stands, so two values of one shape have their tensors
in step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Any

import torch

from ...prelude.values import List
from ...translate.data.unions import is_data_class
from .elements import chained
from .representation import maker


def tensors(tree: Any) -> list[torch.Tensor]:
    """Return the tensors of a host value, left to right."""
    found: list[torch.Tensor] = []
    pending = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, torch.Tensor):
            found.append(value)
        else:
            pending += reversed(parts(value))
    return found


def distinct_tensors(trees: Sequence[Any]) -> list[torch.Tensor]:
    """Return the tensors of host values; what is shared is visited once."""
    found: list[torch.Tensor] = []
    seen: set[int] = set()
    pending = list(reversed(trees))
    while pending:
        value = pending.pop()
        if isinstance(value, torch.Tensor):
            found.append(value)
            continue
        inside = parts(value)
        if inside and id(value) not in seen:
            seen.add(id(value))
            pending += reversed(inside)
    return found


def first_tensor(tree: Any) -> torch.Tensor | None:
    """Return the first tensor of a host value, None if there is none."""
    pending = [tree]
    seen: set[int] = set()  # a value that contains itself is refused later
    while pending:
        value = pending.pop()
        if isinstance(value, torch.Tensor):
            return value
        inside = parts(value)
        if inside and id(value) not in seen:
            seen.add(id(value))
            pending += reversed(inside)
    return None


def parts(value: Any) -> Sequence[Any]:
    """Return the fields of a tuple or of an instance of a dataclass, or the elements of a list;
    nothing for other values."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, List):
        return tuple(value)
    read = _reader(type(value))
    return () if read is None else read(value)


def map_tensors(tree: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """Return a host value with its tensors changed, left to right."""
    return _mapped(tree, change, List.of)


def lowered(tree: Any) -> Any:
    """Return a value as compiled code holds it: lists as chains."""
    return _mapped(tree, lambda tensor: tensor, lambda items: chained(*items))


def _mapped(
    tree: Any, change: Callable[[torch.Tensor], Any], list_of: Callable[[Sequence[Any]], Any]
) -> Any:
    frames: list[tuple[Any, Sequence[Any], list[Any]]] = []
    result = _enter(tree, change, list_of, frames)
    while frames:
        value, inside, made = frames[-1]
        made.append(result)
        if len(made) < len(inside):
            result = _enter(inside[len(made)], change, list_of, frames)
        else:
            frames.pop()
            result = list_of(made) if isinstance(value, List) else _rebuilt(value, inside, made)
    return result


def _enter(
    value: Any,
    change: Callable[[torch.Tensor], Any],
    list_of: Callable[[Sequence[Any]], Any],
    frames: list[tuple[Any, Sequence[Any], list[Any]]],
) -> Any:
    """Go down to the first value without parts, and give what becomes of it."""
    while True:
        if isinstance(value, torch.Tensor):
            return change(value)
        inside = parts(value)
        if not inside:
            return list_of(()) if isinstance(value, List) else value
        frames.append((value, inside, []))
        value = inside[0]


def _rebuilt(value: Any, inside: Sequence[Any], made: list[Any]) -> Any:
    if all(a is b for a, b in zip(inside, made, strict=True)):
        return value
    if isinstance(value, tuple):
        return tuple(made)
    return _maker(type(value))(*made)


@lru_cache(maxsize=4096)
def _reader(cls: type) -> Callable[[Any], Sequence[Any]] | None:
    names = _names(cls)
    if not names:
        return None
    if len(names) == 1:
        (name,) = names
        return lambda value: (getattr(value, name),)
    return attrgetter(*names)


@lru_cache(maxsize=4096)
def _maker(cls: type) -> Callable[..., Any]:
    return maker(cls, _names(cls))


def _names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls)) if is_data_class(cls) else ()
