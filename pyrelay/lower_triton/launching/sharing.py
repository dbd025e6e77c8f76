"""Whether operands that a kernel writes to lie in the storage of others.

A kernel may read an operand after it has written to another one, since its programs run in any
order. So where two operands share storage, the calls of torch that it stands for run instead.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch


def is_shared(operands: Sequence[Any], written: Collection[int]) -> bool:
    """Return whether an operand at one of the positions `written` may lie where another one does.
    Tensors whose elements lie between each other's count as sharing."""
    spans = sorted(
        (o.data_ptr(), o.data_ptr() + extent(o) * o.itemsize, i in written)
        for i, o in enumerate(operands)
        if isinstance(o, torch.Tensor) and o.numel()
    )
    any_end = written_end = 0
    for begin, end, is_written in spans:
        if begin < (any_end if is_written else written_end):
            return True
        any_end = max(any_end, end)
        if is_written:
            written_end = max(written_end, end)
    return False


def extent(tensor: torch.Tensor) -> int:
    """Return how many elements lie between the first and the last of a tensor."""
    reach = sum((s - 1) * abs(d) for s, d in zip(tensor.shape, tensor.stride(), strict=True))
    return max(reach + 1, tensor.numel())
