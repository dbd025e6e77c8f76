"""Kinds of the type parameters of data types: a parameter that stands in a shape is a dim.

A parameter is a dim where it stands in a shape, where it is passed on for one, and where it says so
itself: `TypeVar("n", bound=Dim)`. Data types may mention each other, so this is a least fixed point
over a group of them.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

from ... import annotations as written
from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.types import Kind
from ..source.unions import Evaluate, Union, parameters
from .aliases import abbreviation, is_size

Located: TypeAlias = "tuple[Union, Mapping[Any, Any]]"
"""A data type that an annotation names, and its type arguments by parameter."""

Locate: TypeAlias = Callable[[Any], "Located | None"]
Kinds: TypeAlias = dict[tuple[frozenset[Any], str], Kind]
"""The kind of each parameter of each union, by name."""


@final
@dataclass(frozen=True, slots=True)
class ParamUses:
    """Where the type parameters of one class stand: in shapes, and as arguments of data types."""

    dims: tuple[Any, ...]
    """Type variables, and the names of those that something is computed with."""
    data: tuple[Located, ...]


def uses_of(annotation: Any, locate: Locate, evaluate: Evaluate) -> ParamUses:
    """Return how an annotation uses type parameters. Raises what evaluating text in it raises."""
    found = ParamUses((), ())
    pending = [annotation]
    while pending:
        value = pending.pop()
        if isinstance(value, typing.ForwardRef):
            value = value.__forward_arg__
        if isinstance(value, str):
            value = evaluate(value)
        here, inside = _uses_at(value, locate, evaluate)
        found = ParamUses((*found.dims, *here.dims), (*found.data, *here.data))
        pending += inside
    return found


def _uses_at(value: Any, locate: Locate, evaluate: Evaluate) -> tuple[ParamUses, list[Any]]:
    """Return how the outermost part of an annotation uses type parameters, and the parts in it."""
    match value:
        case written.TensorAnnotation(items):
            return ParamUses(tuple(_type_vars(items)), ()), []
        case written.FnAnnotation(params, result):
            return ParamUses((), ()), [*params, result]
        case written.RefAnnotation(content):
            return ParamUses((), ()), [content]
        case _ if typing.get_origin(value) is typing.Annotated:
            return ParamUses(tuple(_type_vars(typing.get_args(value)[1:])), ()), []
        case _ if is_size(value):
            return ParamUses((value,), ()), []
        case _:
            pass
    short = abbreviation(value, evaluate)
    if short is not None:
        return _uses_of_abbreviation(*short, locate, evaluate), list(short[1])
    located = locate(value)
    if located is not None:
        return ParamUses((), (located,)), list(located[1].values())
    return ParamUses((), ()), _flat(typing.get_args(value))


def _uses_of_abbreviation(
    alias: Any, args: Sequence[Any], locate: Locate, evaluate: Evaluate
) -> ParamUses:
    """Return how what an abbreviation stands for uses its type arguments."""
    inside = uses_of(alias.__value__, locate, evaluate)
    given = dict(zip(map(_name, parameters(alias)), args, strict=False))
    dims = tuple(given.get(_name(d), d) for d in inside.dims)
    data = tuple(
        (u, {p: given.get(_name(a), a) for p, a in found.items()}) for u, found in inside.data
    )
    return ParamUses(dims, data)


def find_kinds(
    group: Sequence[Union],
    uses: Mapping[type, Sequence[ParamUses]],
    known: Mapping[tuple[frozenset[Any], str], Kind],
) -> Kinds:
    """Return the kinds of the parameters of data types defined together."""
    found: Kinds = {
        (u.key, p.__name__): Kind.DIM if is_size(p) else Kind.TYPE for u in group for p in u.params
    }

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
    uses: Mapping[type, Sequence[ParamUses]],
    is_dim: Callable[[Union, Any], bool],
) -> Iterator[tuple[Union, Any]]:
    """Return the parameters of unions that stand for a size, as far as is known."""
    for union in group:
        for member in union.members:
            names = [_name(p) for p in parameters(member.cls)]
            passed: dict[Any, Any] = dict(zip(names, member.args, strict=False))
            sizes = [n for p, n in zip(parameters(member.cls), names, strict=True) if is_size(p)]
            sizes += [d for use in uses[member.cls] for d in use.dims]
            for use in uses[member.cls]:
                for other, args in use.data:
                    sizes += [a for p, a in args.items() if is_dim(other, p)]
            for size in sizes:
                param = passed.get(_name(size))
                if param in union.params:
                    yield union, param


def _type_vars(items: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for item in _flat(items):
        if isinstance(item, typing.TypeVar):
            found.append(item)
        elif isinstance(item, Dim):
            found += sorted(item.names())
    return found


def _name(value: Any) -> str | None:
    """Return the name of a type variable, or of one that something is computed with."""
    if isinstance(value, str):
        return value
    return value.__name__ if isinstance(value, typing.TypeVar) else None


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
