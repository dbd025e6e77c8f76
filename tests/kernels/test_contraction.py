"""Kernels of sums of products: values for every sort of dim, and what their text looks like."""

from __future__ import annotations

import pytest
import torch

from tests.golden import Golden
from tests.kernels.running import check, text

PLAIN = """def @plain[M: Dim, K: Dim, N: Dim](
    %x: Tensor[(M, K), float32], %y: Tensor[(K, N), float32]) {
    matmul(%x, %y)
}"""


@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 3, 7), (70, 40, 65), (0, 3, 4), (3, 0, 4)])
def test_a_product_of_matrices(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    check(PLAIN, torch.randn(m, k), torch.randn(k, n))
    check(PLAIN, torch.randn(k, m).T, torch.randn(n, k).T)
