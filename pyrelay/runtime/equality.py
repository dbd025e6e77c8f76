"""Equality of whole values: data field by field, tensors by their elements; at any depth.

The `==` of a dataclass recurses, and asks tensors for one truth value, which they do not have.
"""

from __future__ import annotations

from typing import Any

import torch

from ..prelude.values import List
from .structure import parts


def values_equal(left: Any, right: Any) -> bool:
    """Tell whether two values are equal: of one class with equal fields; tensors of one dtype and
    shape with equal elements; a number and a tensor of rank 0 with that value. What is not a number
    (nan) equals nothing."""
    seen: set[tuple[int, int]] = set()
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        inside, other = _parts(a), _parts(b)
        if not inside and not other:
            if not _leaves_equal(a, b):
                return False
            continue
        if type(a) is not type(b) or len(inside) != len(other):
            return False
        # What is shared is compared once, however often it stands there.
        if (id(a), id(b)) not in seen:
            seen.add((id(a), id(b)))
            pending += zip(inside, other, strict=True)
    return True


def _parts(value: Any) -> Any:
    return value if isinstance(value, list | List) else parts(value)  # pyright: ignore[reportUnknownVariableType]


def _leaves_equal(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, torch.Tensor):
            is_number = isinstance(other, bool | int | float)
            return is_number and one.dim() == 0 and bool(one == other)
    return type(left) is type(right) and bool(left == right)
