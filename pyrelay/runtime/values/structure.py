"""Values whose types are not at hand: their parts, their tensors, and lists inside and outside.

A shared part counts at each place where it stands, so two values of one shape have their tensors
in step; `distinct` visits it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, Final, TypeAlias

import torch

from ...prelude.values import List
from ...translate.source.unions import is_data_class
from .representation import maker, reader
from .values import Cell

Chain: TypeAlias = tuple[Any, ...]
"""A list in compiled code: `(0, head, tail)` or `(1,)`."""

_NIL: Chain = (1,)

_REAL: Final = (torch.Tensor, float)


def elements(value: Any) -> Sequence[Any]:
    """Return the elements of a list, outside or inside of compiled code."""
    if not isinstance(value, tuple):
        return value if isinstance(value, list) else tuple(value)
    found: list[Any] = []
    chain: Any = value
    while len(chain) > 1:
        _, head, chain = chain
        found.append(head)
    return found


def chained(*items: Any) -> Chain:
    """Return a list as compiled code has it."""
    chain = _NIL
    for item in reversed(items):
        chain = (0, item, chain)
    return chain


def listed(*items: Any) -> List[Any]:
    """Return a list as scripts get it."""
    return List.of(items)


def parts(value: Any) -> Sequence[Any]:
    """Return the fields of a tuple or of an instance of a dataclass, or the elements of a list;
    nothing for other values."""
    if isinstance(value, tuple | list):
        return value
    if isinstance(value, List):
        return tuple(value)
    return _reader(type(value))(value)


def tensors(tree: Any) -> list[torch.Tensor]:
    """Return the tensors of a host value, left to right."""
    return _instances(tree, torch.Tensor)


def reals(tree: Any) -> list[torch.Tensor | float]:
    """Return the tensors and the floats of a host value, left to right."""
    return _instances(tree, _REAL)


def _instances(tree: Any, kind: Any) -> list[Any]:
    found: list[Any] = []
    pending = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, kind):
            found.append(value)
        else:
            pending += reversed(parts(value))
    return found


def skeleton(tree: Any) -> list[tuple[type, int]]:
    """Return the class of each part of a host value and how many parts it has, from the outside in;
    values without parts are alike, but for empty lists."""
    found: list[tuple[type, int]] = []
    pending = [tree]
    while pending:
        value = pending.pop()
        inside = () if isinstance(value, torch.Tensor) else parts(value)
        is_list = isinstance(value, List | list)
        is_leaf = not inside and not is_list and not is_data_class(type(value))
        found.append((object if is_leaf else List if is_list else type(value), len(inside)))
        pending += inside
    return found


def distinct(
    values: Iterable[Any], inside: Callable[[Any], Sequence[Any]] = parts
) -> Iterator[Any]:
    """Return the values without parts, left to right; what is shared is visited once. `inside`
    returns the parts of a value."""
    seen: set[int] = set()  # a value may contain itself
    pending = list(values)
    pending.reverse()
    while pending:
        value = pending.pop()
        found = () if isinstance(value, torch.Tensor) else inside(value)
        if not found:
            yield value
        elif id(value) not in seen:
            seen.add(id(value))
            pending += reversed(found)


def distinct_tensors(trees: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Return the tensors of host values; what is shared is visited once."""
    return (v for v in distinct(trees) if isinstance(v, torch.Tensor))


def lent(values: Iterable[Any]) -> list[Any]:
    """Return host values without cells: in the place of each that has some in it, the tensors in it
    and in its cells."""

    def inside(value: Any) -> Sequence[Any]:
        return (value.value,) if isinstance(value, Cell) else parts(value)

    def opened(value: Any) -> Any:
        has_cells = any(isinstance(part, Cell) for part in distinct((value,)))
        return list(distinct((value,), inside)) if has_cells else value

    return [v if isinstance(v, torch.Tensor) else opened(v) for v in values]


def tensor_ids(values: Iterable[Any]) -> set[int]:
    """Return the identities of the tensors of host values, many of which are tensors."""
    found: set[int] = set()
    nested: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.add(id(value))
        else:
            nested.append(value)
    if nested:
        found.update(map(id, distinct_tensors(nested)))
    return found


def map_tensors(tree: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """Return a host value with its tensors changed, left to right."""
    return _mapped(tree, change, listed)


def map_reals(tree: Any, change: Callable[[Any], Any]) -> Any:
    """Return a host value with its tensors and floats changed, left to right."""
    return _mapped(tree, change, listed, _REAL)


def with_tensors(tree: Any, replacement: Sequence[Any]) -> Any:
    """Return a host value with its tensors, left to right, replaced."""
    rest = iter(replacement)
    return map_tensors(tree, lambda _: next(rest))


def lowered(tree: Any) -> Any:
    """Return a value as compiled code has it: lists as chains."""
    return _mapped(tree, lambda tensor: tensor, chained)


def _mapped(
    tree: Any,
    change: Callable[[Any], Any],
    list_of: Callable[..., Any],
    kind: Any = torch.Tensor,
) -> Any:
    frames: list[tuple[Any, Sequence[Any], list[Any]]] = []
    value = tree
    while True:
        if isinstance(value, kind):
            result = change(value)
        elif inside := parts(value):
            frames.append((value, inside, []))
            value = inside[0]
            continue
        else:
            result = list_of() if isinstance(value, List | list) else value
        while True:
            if not frames:
                return result
            whole, inside, made = frames[-1]
            made.append(result)
            if len(made) < len(inside):
                value = inside[len(made)]
                break
            frames.pop()
            result = _rebuilt(whole, inside, made, list_of)


def _rebuilt(
    value: Any, inside: Sequence[Any], made: list[Any], list_of: Callable[..., Any]
) -> Any:
    if isinstance(value, List | list):
        return list_of(*made)
    if all(a is b for a, b in zip(inside, made, strict=True)):
        return value
    return tuple(made) if isinstance(value, tuple) else _maker(type(value))(*made)


@lru_cache(maxsize=4096)
def _reader(cls: type) -> Callable[[Any], Sequence[Any]]:
    return reader(_names(cls))


@lru_cache(maxsize=4096)
def _maker(cls: type) -> Callable[..., Any]:
    return maker(cls, _names(cls))


def _names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls)) if is_data_class(cls) else ()
