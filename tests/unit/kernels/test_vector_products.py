"""Products with vectors are reductions, and products of vectors elementwise."""

from __future__ import annotations

import pytest

from pyrelay.ir.expr import type_of
from pyrelay.ir.types import float32
from pyrelay.kernels.groups import Kind
from pyrelay.kernels.reading import dtype_of
from tests.unit.kernels.test_fuse import check, groups, kinds


@pytest.mark.parametrize("turned", [False, True])
def test_a_row_times_a_matrix_is_a_reduction_in_the_order_of_memory(turned: bool) -> None:
    shape = "(8, K)" if turned else "(K, 8)"
    right = "transpose(%w, dim0=0, dim1=1)" if turned else "reshape(%w, shape=(K, 8))"
    found = check(
        f"def @main[K: Dim](%x: Tensor[(1, K), float32], %w: Tensor[{shape}, float32],"
        " %b: Tensor[(8,), float32]) {"
        f" let %v = {right}; let %y = matmul(%x, %v); tanh(%y + %b) }}",
        K=5,
    )
    (group,) = groups(found)
    assert group.kind is Kind.ROWS
    assert group.domain is not None
    assert [is_reduced for _, is_reduced in group.domain.merged] == (
        [False, True] if turned else [True, False]
    )


def test_a_matrix_times_a_column_is_a_reduction() -> None:
    found = check(
        "def @main[M: Dim, K: Dim](%x: Tensor[(M, K), float32], %w: Tensor[(K, 1), float32]) {"
        " tanh(matmul(%x, %w)) }",
        M=3,
        K=5,
    )
    assert kinds(found) == [Kind.ROWS]


def test_a_stack_of_rows_is_a_reduction() -> None:
    found = check(
        "def @main[B: Dim, K: Dim](%x: Tensor[(B, 1, K), float32],"
        " %w: Tensor[(B, K, 6), float32], %s: Tensor[(1, K, 6), float32]) {"
        " (matmul(%x, %w), matmul(%x, %s)) }",
        B=3,
        K=5,
    )
    assert set(kinds(found)) == {Kind.ROWS}


def test_a_column_times_a_row_is_elementwise() -> None:
    found = check(
        "def @main[M: Dim, N: Dim](%x: Tensor[(M, 1), float32], %y: Tensor[(1, N), float32],"
        " %w: Tensor[(M, N), float32]) { let %o = matmul(%x, %y); %w - %o * 0.1f32 }",
        M=3,
        N=4,
    )
    assert kinds(found) == [Kind.POINTWISE]


def test_sums_of_half_types_are_wide() -> None:
    found = check(
        "def @main(%x: Tensor[(1, 300), bfloat16], %w: Tensor[(300, 4), bfloat16]) {"
        " matmul(%x, %w) }"
    )
    (group,) = groups(found)
    assert dtype_of(type_of(group.reductions[0].call)) == float32
