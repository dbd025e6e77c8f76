"""What type parameters stand for in a call, read off the values that it is given.

Values are walked with the types that were declared for them, each shared part once, on a stack of
the walk's own. What a value is told as, a type or a description of one, is the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import torch

from ...annotations import Ref
from ...ir import types
from ...ir.dims import Dim
from ...ir.types import DTYPES, AdtType, DType, RefType, TupleType, Type, subtypes
from ...prelude.library import LIST, OPTION
from ...prelude.values import List, some_value
from ..values.values import Cell

Told = TypeVar("Told")
Typed: TypeAlias = Sequence[tuple[Type, Any]]
"""Values with their types."""


def type_vars_of(declared: Iterable[Type]) -> tuple[str, ...]:
    """Return the names of the type parameters that types mention."""
    found = (p.name for ty in declared for p in subtypes(ty) if isinstance(p, types.TypeVar))
    return tuple(dict.fromkeys(found))


def solve(
    given: Typed,
    wanted: Iterable[str],
    fields: Callable[[AdtType, Any], Typed],
    tell: Callable[[Any], Told | None],
    is_whole: Callable[[Told], bool],
) -> dict[str, Told]:
    """Return what `tell` says of values whose types are the `wanted` parameters.

    What no value tells is left out. A later value is asked as long as what is told is not whole.
    `fields` gives the fields of a value of a data type.
    """
    found: dict[str, Told] = {}
    pending = list(reversed(given))
    left = set(wanted)
    seen: set[tuple[int, Type]] = set()
    while pending and left:
        ty, value = pending.pop()
        if isinstance(ty, types.TypeVar) and ty.name in left:
            told = tell(value)
            if told is not None:
                found[ty.name] = told
                left -= {ty.name} if is_whole(told) else set()
        elif (id(value), ty) not in seen and type_vars_of([ty]):
            seen.add((id(value), ty))
            pending += reversed(_inside(ty, value, fields))
    return found


def _inside(ty: Type, value: Any, fields: Callable[[AdtType, Any], Typed]) -> Typed:
    """Return the parts of a value with their types; none where it is not of the type."""
    match ty:
        case TupleType(parts) if isinstance(value, tuple | list):
            return list(zip(parts, cast("Sequence[Any]", value), strict=False))
        case RefType(content) if isinstance(value, Ref | Cell):
            return [(content, value.value)]
        case AdtType(name, (inner,)) if name == OPTION and not isinstance(inner, Dim):
            return [] if value is None else [(inner, some_value(value))]
        case AdtType(name, (inner,)) if name == LIST and not isinstance(inner, Dim):
            return [(inner, v) for v in value] if isinstance(value, list | List) else []
        case AdtType():
            return fields(ty, value)
        case _:
            return []


def is_array(value: Any) -> bool:
    """Return whether a value is a tensor, or an array that becomes one."""
    return isinstance(value, torch.Tensor | np.ndarray | np.generic)


def shape_and_dtype(value: Any) -> tuple[tuple[int, ...], DType | None]:
    """Return the shape and dtype of a tensor or an array; None for a dtype that no program has."""
    tensor = value if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))
    return tuple(tensor.shape), DTYPES.get(str(tensor.dtype).removeprefix("torch."))
