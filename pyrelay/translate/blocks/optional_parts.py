"""Optionals inferred from a list display: where some elements are, or contain, None and others have
a value in its place, the type is an optional there.

`[x, None]` has optionals, `[(1, x), (2, None)]` pairs with an optional, `[[x, None], [None]]` lists
of optionals. Only the display itself is looked at; displays nest as deep as a user writes,
so this recurses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...ir.dims import Dim
from ...ir.types import UNKNOWN, AdtType, TupleType, Type, subtypes
from ...prelude.library import LIST, OPTION, inner_of
from ..source.syntax import is_none


def element_type(elements: Sequence[ast.expr]) -> Type:
    """Return the type that the elements of a display have in common, unknown but for the optionals
    in it."""
    values = [e for e in elements if not is_none(e)]
    if not values:
        return UNKNOWN
    found = _type_of_values(values)
    return AdtType(OPTION, (found,)) if len(values) < len(elements) else found


def has_optionals(ty: Type) -> bool:
    """Return whether a type mentions optionals."""
    return any(inner_of(part) is not None for part in subtypes(ty))


def inner_displays(elements: Sequence[ast.expr], ty: Type) -> Iterator[tuple[ast.expr, Type]]:
    """Return the lists that are written out among the elements, and in tuples among them, each with
    the type of its own elements."""
    ty = inner_of(ty) or ty
    for element in elements:
        match element, ty:
            case ast.List() | ast.ListComp(), AdtType(args=(own,)) if not isinstance(own, Dim):
                yield element, own
            case ast.Tuple(elts=parts), TupleType(fields):
                for part, field in zip(parts, fields, strict=True):
                    yield from inner_displays([part], field)
            case _:
                pass


def _type_of_values(values: Sequence[ast.expr]) -> Type:
    lists = [v for v in values if isinstance(v, ast.List)]
    if len(lists) == len(values):
        return AdtType(LIST, (element_type([e for v in lists for e in v.elts]),))
    tuples = [v for v in values if isinstance(v, ast.Tuple)]
    if len(tuples) < len(values) or len({len(v.elts) for v in tuples}) > 1:
        return UNKNOWN
    if any(isinstance(e, ast.Starred) for v in tuples for e in v.elts):
        return UNKNOWN
    columns = zip(*(v.elts for v in tuples), strict=True)
    return TupleType(tuple(element_type(column) for column in columns))
