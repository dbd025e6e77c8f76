"""Which types carry derivatives."""

from __future__ import annotations

from typing import Final

from ..dims import Dim
from ..types import (
    ITERABLE,
    ITERATOR,
    PRELUDE,
    AdtType,
    DTypeHole,
    FnType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    TypeVar,
    is_float,
    subtypes,
)

_HOLDERS: Final = frozenset((f"{PRELUDE}List", f"{PRELUDE}Option"))
"""Data types whose values have nothing but elements of their argument."""


def is_differentiable(ty: Type) -> bool:
    """Return whether a value of the type can carry a cotangent: it holds a float somewhere, not
    counting what cells hold. A list or an optional holds what its elements do; other data types
    count as if they had floats."""
    pending = [ty]
    while pending:
        match pending.pop():
            case AdtType(name, args) as part if name in _HOLDERS and not _has_holes(part):
                pending += (arg for arg in args if not isinstance(arg, Dim))
            case TypeVar() | AdtType() | FnType() as part if part not in (ITERABLE, ITERATOR):
                return True
            case TensorType(_, dtype) if is_float(dtype):
                return True
            case TupleType(fields):
                pending += fields
            case _:
                pass
    return False


def _has_holes(ty: Type) -> bool:
    """Return whether inference has not found every part of a type."""
    return any(
        isinstance(part, TypeHole)
        or (isinstance(part, TensorType) and isinstance(part.dtype, DTypeHole))
        for part in subtypes(ty)
    )
