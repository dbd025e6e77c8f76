"""Kernels of scatters: additions at places that are values."""

from __future__ import annotations

import pytest
import torch

from pyrelay.kernels.calling import NoKernel
from tests.golden import Golden
from tests.kernels.running import check, text

TABLE = """def @table[N: Dim](%g: Tensor[(N, 4), float32], %i: Tensor[(N,), int64]) {
    embedding_grad(tanh(%g), %i, num_embeddings=9)
}"""
BASED = """def @based[N: Dim, M: Dim](
    %x: Tensor[(M, 3), float32], %i: Tensor[(N, 3), int64], %y: Tensor[(N, 3), float32]) {
    scatter_add(%x * 2.0f32, %i, %y, dim=0)
}"""
STORED = """def @stored[N: Dim](
    %t: Tensor[(9, 5), float32], %i: Tensor[(N,), int64], %x: Tensor[(N, 5), float32]) {
    let %_ = store_rows(%t, %i, tanh(%x)); ()
}"""
COUNTS = """def @counts[N: Dim](%i: Tensor[(N,), int64], %y: Tensor[(N,), int64]) {
    index_add(zeros(size=(5,), dtype=int64), %i, %y, dim=0)
}"""


@pytest.mark.parametrize("rows", [0, 1, 300])
def test_rows_are_added_to_zeros(rows: int) -> None:
    check(TABLE, torch.randn(rows, 4), torch.randint(0, 9, (rows,)))


def test_elements_are_added_to_what_is_there() -> None:
    i = torch.randint(-6, 6, (40, 3)) % 6
    check(BASED, torch.randn(6, 3), i, torch.randn(40, 3))
    check(BASED, torch.randn(3, 6).T, i, torch.randn(3, 40).T)


@pytest.mark.parametrize("rows", [(), (3,), (3, 0, 8)])
def test_rows_of_a_table_are_stored_in_it(rows: tuple[int, ...]) -> None:
    i, x = torch.tensor(rows, dtype=torch.int64), torch.randn(len(rows), 5)
    check(STORED, torch.randn(9, 5), i, x)
    check(STORED, torch.randn(5, 9).T, i, x)


@pytest.mark.parametrize("rows", [(), (3,), (3, 0, 3, 3)])
def test_rows_are_added_to_those_of_a_table(rows: tuple[int, ...]) -> None:
    added = STORED.replace("store_rows", "add_rows")
    i, x = torch.tensor(rows, dtype=torch.int64), torch.randn(len(rows), 5)
    check(added, torch.randn(9, 5), i, x)
    check(added, torch.randn(5, 9).T, i, x)


def test_integers_are_added_exactly() -> None:
    check(COUNTS, torch.randint(0, 5, (200,)), torch.randint(-9, 9, (200,)))


def test_halves_are_not_added_atomically() -> None:
    with pytest.raises(NoKernel, match="bfloat16 is not added atomically"):
        text(TABLE.replace("float32", "bfloat16"))


def test_the_text_of_a_table(golden: Golden) -> None:
    golden("table.txt", text(TABLE))
