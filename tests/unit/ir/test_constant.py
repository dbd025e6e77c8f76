"""Numbers in half types are those that torch's tensors hold."""

from __future__ import annotations

import math

import torch
from hypothesis import example, given
from hypothesis import strategies as st

from pyrelay.ir.constant import nearest
from pyrelay.ir.types import bfloat16, float16, float32


@given(st.floats(allow_nan=False))
@example(0.1)
@example(65519.9)
@example(65520.0)
@example(-3.4e38)
@example(1e300)
@example(-0.0)
@example(1.00390625)  # in the middle of two of bfloat16
@example(2.0**-25)
def test_a_number_of_a_half_type_is_the_one_in_a_tensor(value: float) -> None:
    for dtype, torchs in ((float16, torch.float16), (bfloat16, torch.bfloat16)):
        found, expected = nearest(value, dtype), torch.tensor(value, dtype=torchs).item()
        assert found == expected
        assert math.copysign(1, found) == math.copysign(1, expected)


def test_nan_and_other_dtypes_stay() -> None:
    assert math.isnan(nearest(math.nan, bfloat16))
    assert nearest(0.1, float32) == 0.1
