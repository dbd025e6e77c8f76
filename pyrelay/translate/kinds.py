"""Kinds of the type parameters of data types: a parameter that stands in a shape is a dim.

A parameter is a dim where it stands in a shape, and where it is passed on for one. Data types may
mention each other, so this is a least fixed point over a group of them.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from .. import annotations as written
from ..ir.types import Kind
from .unions import Evaluate, Union, parameters

Located: TypeAlias = "tuple[Union, Mapping[Any, Any]]"
"""A data type that an annotation names, and its type arguments by parameter."""

Locate: TypeAlias = Callable[[Any], "Located | None"]
Kinds: TypeAlias = dict[tuple[frozenset[type], str], Kind]
"""The kind of each parameter of each union, by name."""


@final
@dataclass(frozen=True, slots=True)
class Uses:
    """Where the type parameters of one class stand: in shapes, and as arguments of data types."""

    dims: tuple[Any, ...]
    data: tuple[Located, ...]


def uses_of(annotation: Any, locate: Locate, evaluate: Evaluate) -> Uses:
    """Give how an annotation uses type parameters. Raises what evaluating text in it raises."""
    dims: list[Any] = []
    data: list[Located] = []
    pending = [annotation]
    while pending:
        value = pending.pop()
        if isinstance(value, typing.ForwardRef):
            value = value.__forward_arg__
        if isinstance(value, str):
            value = evaluate(value)
        match value:
            case written.TensorAnnotation(items):
                dims += _type_vars(items)
                continue
            case written.FnAnnotation(params, result):
                pending += [*params, result]
                continue
            case written.RefAnnotation(content):
                pending.append(content)
                continue
            case _ if typing.get_origin(value) is typing.Annotated:
                dims += _type_vars(typing.get_args(value)[1:])
                continue
            case _:
                pass
        located = locate(value)
        if located is not None:
            data.append(located)
            pending += located[1].values()
        else:
            pending += _flat(typing.get_args(value))
    return Uses(tuple(dims), tuple(data))


def find_kinds(
    group: Sequence[Union],
    uses: Mapping[type, Sequence[Uses]],
    known: Mapping[tuple[frozenset[type], str], Kind],
) -> Kinds:
    """Give the kinds of the parameters of data types defined together."""
    found: Kinds = {(u.key, p.__name__): Kind.TYPE for u in group for p in u.params}

    def is_dim(union: Union, param: Any) -> bool:
        place = (union.key, param.__name__)
        return found.get(place, known.get(place)) is Kind.DIM

    changed = True
    while changed:
        changed = False
        for union, param in _in_shapes(group, uses, is_dim):
            if not is_dim(union, param):
                found[(union.key, param.__name__)] = Kind.DIM
                changed = True
    return found


def _in_shapes(
    group: Sequence[Union],
    uses: Mapping[type, Sequence[Uses]],
    is_dim: Callable[[Union, Any], bool],
) -> Iterator[tuple[Union, Any]]:
    """Give the parameters of unions that stand for a size, as far as is known."""
    for union in group:
        for member in union.members:
            passed: dict[Any, Any] = dict(zip(parameters(member.cls), member.args, strict=False))
            sizes = [d for use in uses[member.cls] for d in use.dims]
            for use in uses[member.cls]:
                for other, args in use.data:
                    sizes += [a for p, a in args.items() if is_dim(other, p)]
            for size in sizes:
                param = passed.get(size) if isinstance(size, typing.TypeVar) else None
                if param in union.params:
                    yield union, param


def _type_vars(items: Sequence[Any]) -> list[Any]:
    return [v for v in _flat(items) if isinstance(v, typing.TypeVar)]


def _flat(items: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    pending = list(reversed(items))
    while pending:
        item = pending.pop()
        if isinstance(item, list | tuple):
            pending += reversed(item)
        else:
            found.append(item)
    return found
