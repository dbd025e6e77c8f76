"""Sizes that kernels ask for, by the shapes of their operands."""

from __future__ import annotations

import pytest
import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.types import TensorType, float32
from pyrelay.kernels.calling import Sizes

N, M, D = Dim.of("N"), Dim.of("M"), Dim.of("D")
SIZES = Sizes([(TensorType((N + M, D), float32), torch.zeros(7, 3))])

FOUND = {
    "a sum that is shown": (N + M, 7),
    "a part of one": (N * 2 + M * 2 + 1, 15),
    "a product with one": ((N + M) * D, 21),
    "a quotient of one": ((N * 8 + M * 8 + 15) // 16, 4),
    "a product with a quotient": ((N + M - 1) // 2 * D, 9),
    "a remainder": ((N + M) % 4 + 1, 4),
}


@pytest.mark.parametrize(("dim", "size"), FOUND.values(), ids=FOUND)
def test_a_size_is_found_though_its_parts_are_unknown(dim: Dim, size: int) -> None:
    assert SIZES.value(dim) == size


@pytest.mark.parametrize("dim", [N, M + 1, N // 2, N * 2 + M])
def test_a_size_that_no_shape_shows_is_unknown(dim: Dim) -> None:
    with pytest.raises(KeyError):
        SIZES.value(dim)
