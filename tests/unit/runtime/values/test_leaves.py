"""Functions written out for types read the leaves of values, and what plans depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.types import RefType, TensorType, TupleType, float32, int64
from pyrelay.runtime.border.fast_flatten import key_reader, leaf_reader

ROW = TensorType((Dim.of("N"),), float32)
PARAMS = TupleType((TupleType((ROW, ROW)), ROW))
STATE = TupleType((RefType(ROW),))


def test_leaves_are_read_left_to_right() -> None:
    assert leaf_reader((ROW, PARAMS))([1, ((2, 3), 4)]) == [1, 2, 3, 4]
    assert leaf_reader((PARAMS,))([(((5, 6), 3), 4)]) == [(5, 6), 3, 4], "a leaf may be a pair"


def test_a_key_tells_shapes_and_dtypes_of_arguments() -> None:
    read = key_reader((PARAMS, STATE, ROW), 2)
    assert read is not None

    def key(x: Any, dtype: torch.dtype = torch.float32) -> Any:
        return read((((torch.zeros(2, dtype=dtype), torch.zeros(3)), torch.zeros(4)), (), x))

    row = torch.zeros(5)
    assert key(row) == key(torch.ones(5))
    others = (torch.zeros(6), row.double(), row.to("meta"), row.to_sparse())
    assert key(row) not in [key(x) for x in others]
    assert key(row, torch.float64) != key(row)
    assert len({key(row), *(key(x) for x in others)}) == 5


@pytest.mark.parametrize("value", [1.5, [1.0], None, np.zeros(5, np.float32)])
def test_a_value_that_is_no_tensor_has_no_key(value: Any) -> None:
    read = key_reader((ROW,), 0)
    assert read is not None
    with pytest.raises(AttributeError):
        read((value,))


def test_arguments_that_may_be_numbers_or_tuples_are_read_otherwise() -> None:
    for ty in (TensorType((), float32), TensorType((), int64), PARAMS, RefType(ROW)):
        assert key_reader((ROW, ty), 0) is None
    assert key_reader((), 0) is None
