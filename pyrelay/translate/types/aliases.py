"""`type` statements of Python 3.12 that abbreviate a type: `type Row[N] = Tensor[Float, (N,)]`.

One that joins dataclasses, or stands for `Never`, names a data type instead, and is read in `data`.
An abbreviation is read in its own parameters, for which its arguments are put in.
"""

from __future__ import annotations

import typing
from typing import Any, Protocol

from ... import annotations as written
from ...ir.dims import Dim
from ...ir.types import UNKNOWN, Substitution, Type, TypeVar, dim_names, subtypes
from ..source.unions import Evaluate, is_named_alias, members_of, names_nothing, parameters


class Reader(Protocol):
    """A reader of annotations, as far as an abbreviation needs one."""

    def type(self, value: Any) -> Type:
        """Return the type that an object stands for in an annotation."""
        ...

    def dim(self, value: Any) -> Dim:
        """Return the size that an object stands for in a shape."""
        ...

    def open_dim(self) -> Dim:
        """Return a size that an annotation leaves open."""
        ...


def named_alias(value: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """Return the alias that an annotation mentions and its type arguments; None for other
    objects."""
    if is_named_alias(value):
        return value, ()
    origin = getattr(value, "__origin__", None)
    return (origin, tuple(value.__args__)) if is_named_alias(origin) else None


def abbreviation(
    value: Any, evaluate: Evaluate | None = None
) -> tuple[Any, tuple[Any, ...]] | None:
    """Return an alias that abbreviates a type and its type arguments; None for the alias of a union
    of several or of `Never`, which are data types, and for other objects."""
    found = named_alias(value)
    if found is None or names_nothing(found[0], evaluate):
        return None
    whole = members_of(found[0], evaluate)
    return found if whole is None or len(whole) == 1 else None


def wrong_arguments(value: Any) -> str | None:
    """Return the mistake in the number of type arguments of an alias, if there is one."""
    found = named_alias(value)
    if found is None or not found[1]:
        return None
    alias, args = found
    wanted = len(parameters(alias))
    if len(args) == wanted:
        return None
    noun = "argument" if wanted == 1 else "arguments"
    return f"`{alias.__name__}` takes {wanted or 'no'} type {noun}, and gets {len(args)}"


def type_of(alias: Any, args: tuple[Any, ...], reader: Reader) -> Type:
    """Return the type that an abbreviation stands for with its type arguments; those that are not
    written are open. Raises what reading it raises."""
    ty = reader.type(alias.__value__)
    sizes = dim_names(ty)
    types = {p.name for p in subtypes(ty) if isinstance(p, TypeVar)}
    found = Substitution({}, {})
    for param, arg in zip(parameters(alias), args or (None,) * len(parameters(alias)), strict=True):
        name = param.__name__
        if name in sizes:
            found.dims[name] = reader.open_dim() if arg is None else reader.dim(arg)
        elif name in types:
            found.types[name] = UNKNOWN if arg is None else reader.type(arg)
    return found(ty)


def is_size(param: Any) -> bool:
    """Return whether a type parameter says itself that it is a size: `def f[N: Dim](...)`."""
    return isinstance(param, typing.TypeVar) and param.__bound__ is written.Dim
