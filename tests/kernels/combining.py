"""Reductions in Triton's interpreter by halves of blocks, as a device combines them.

The interpreter combines by functions of ours one element after another, each in Python: a row of
100,000 elements takes half a minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import numpy as np


def by_halves() -> AbstractContextManager[Any]:
    """Have the interpreter combine halves of blocks, whose sizes are powers of two."""
    from triton.runtime.interpreter import ReduceOps

    return patch.object(ReduceOps, "generic_reduce", _combined)


def _combined(reduction: Any, given: Sequence[Any]) -> list[Any]:
    blocks, axis = reduction.unravel(given, reduction.axis)
    dtypes = [block.dtype for block in blocks]
    parts = [np.moveaxis(block.handle.data, axis, 0) for block in blocks]
    while len(parts[0]) > 1:
        half = len(parts[0]) // 2
        some = [part[:half] for part in parts] + [part[half:] for part in parts]
        pairs = zip(some, dtypes * 2, strict=True)
        found = reduction.combine_fn.fn(*(reduction.to_tensor(part, d) for part, d in pairs))
        parts = [f.handle.data for f in (found if isinstance(found, tuple) else (found,))]
    if not reduction.keep_dims:
        found = [part[0] for part in parts]
    else:
        found = [np.moveaxis(part, 0, axis) for part in parts]
    return [reduction.to_tensor(part, d) for part, d in zip(found, dtypes, strict=True)]
