"""Which parts of a value differ between the elements of a batch."""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, TypeAlias

from ..batching import rows


class Form(Enum):
    """How a batched value of a data type is represented, if not as one structure of batched
    tensors."""

    MIXED = "mixed"
    """For each constructor, the elements that have it (`mixtures.py`)."""


MIXED: Final = Form.MIXED
Mask: TypeAlias = "bool | Literal[Form.MIXED] | tuple[Mask, ...]"
"""The parts of a value that are batched: one entry for a tensor or data, one mask a field for a
tuple. Data that are batched have one structure, or are mixed."""


def is_any(mask: Mask) -> bool:
    """Return whether a value is batched anywhere."""
    return any(map(is_any, mask)) if isinstance(mask, tuple) else mask is not False


def is_mixed(mask: Mask) -> bool:
    """Return whether a value holds data that are mixed."""
    return any(map(is_mixed, mask)) if isinstance(mask, tuple) else mask is MIXED


def joined(left: Mask, right: Mask) -> Mask:
    """Return the mask of what is batched in one of two values of a type."""
    if isinstance(left, tuple):
        assert isinstance(right, tuple)
        return tuple(map(joined, left, right))
    return MIXED if MIXED in (left, right) else left or right


def rows_of(mask: Mask) -> rows.Mask:
    """Return the mask of a value that is not mixed, as rules of operators take it."""
    if isinstance(mask, tuple):
        return tuple(map(rows_of, mask))
    return mask is not False
