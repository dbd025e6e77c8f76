"""Comparison of run-time values that different executors give."""

from __future__ import annotations

from typing import Any

import torch


def assert_same(actual: Any, expected: Any) -> None:
    """Compare two values; floats up to rounding, everything else exactly.

    An int or a bool may be a Python number on one side and a 0-d tensor on the other.
    """
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple)
        assert len(actual) == len(expected)
        for left, right in zip(actual, expected, strict=True):
            assert_same(left, right)
        return
    left, right = torch.as_tensor(actual), torch.as_tensor(expected)
    assert left.dtype == right.dtype
    exact = not right.dtype.is_floating_point
    single = right.dtype == torch.float32
    rtol, atol = (0.0, 0.0) if exact else (1e-4, 1e-5) if single else (1e-9, 1e-11)
    torch.testing.assert_close(left, right, rtol=rtol, atol=atol)
