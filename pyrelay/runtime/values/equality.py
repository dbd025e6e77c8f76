"""`relay.equal` of whole values, as a script calls it: data, lists, tuples, strings, None.

The `==` of a dataclass recurses, and asks tensors for one truth value, which they do not have.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from ...diagnostics.catalogue.call import NotComparable
from ...diagnostics.diagnostic import RunError
from ...prelude.values import List
from ...translate.source.unions import is_data_class
from .structure import parts
from .text import describe

Number: TypeAlias = int | float  # a bool is an int


def values_equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal in every part.

    Tensors are compared by dtype, shape and elements, so one with NaN in it differs from itself;
    numbers by kind and value, where one meets a tensor at the tensor's dtype; instances by their
    class and their fields. Values of any depth are taken, and what is shared is compared once.
    Raises RunError for values that are not compared, such as functions.
    """
    # A pair whose comparison has begun counts as equal: a difference in it shows anyway.
    begun: set[tuple[int, int]] = set()
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        if not (_is_composite(a) and _is_composite(b)):
            if not _is_equal_leaf(a, b):
                return False
            continue
        if (id(a), id(b)) in begun:
            continue
        begun.add((id(a), id(b)))
        inside, other = parts(a), parts(b)
        if _kind(a) is not _kind(b) or len(inside) != len(other):
            return False
        pending += zip(reversed(inside), reversed(other), strict=True)
    return True


def _is_composite(value: Any) -> bool:
    return isinstance(value, tuple | list | List) or is_data_class(type(value))


def _kind(value: Any) -> type:
    """Return the class that two equal values share; a list of Python's own is a list like ours."""
    return list if isinstance(value, List) else type(value)


def _is_equal_leaf(left: Any, right: Any) -> bool:
    for value in (left, right):
        if not (_is_composite(value) or _is_leaf(value)):
            raise RunError(NotComparable(describe(value)))
    match left, right:
        case torch.Tensor(), torch.Tensor():
            return _is_equal_tensor(left, right)
        case (torch.Tensor(), int() | float()):
            return _is_equal_number(left, right)
        case (int() | float(), torch.Tensor()):
            return _is_equal_number(right, left)
        case (int() | float(), int() | float()):
            return isinstance(left, bool) is isinstance(right, bool) and left == right
        case _:
            return type(left) is type(right) and left == right  # strings, None


def _is_leaf(value: Any) -> bool:
    return value is None or isinstance(value, torch.Tensor | int | float | str)


def _is_equal_tensor(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.dtype is not right.dtype or left.shape != right.shape:
        return False
    return torch.equal(left, right.to(left.device))


def _is_equal_number(tensor: torch.Tensor, number: Number) -> bool:
    """Return whether a tensor of rank 0 is what a number becomes at its dtype."""
    if tensor.dim() or isinstance(number, bool) is not (tensor.dtype is torch.bool):
        return False
    if not tensor.is_floating_point():
        return isinstance(number, int) and tensor.item() == number
    return torch.equal(tensor, torch.tensor(number, dtype=tensor.dtype, device=tensor.device))
