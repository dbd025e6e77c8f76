"""Positions in sorted rows, at ties and ends, and rows that do not fit."""

from __future__ import annotations

import pytest
import torch

from pyrelay import Dim, Int, Tensor, float64, relay
from pyrelay.ir.op import Clash
from pyrelay.ir.types import float32, tensor_type
from pyrelay.operators.primitive.sort import searchsorted
from tests.ops.programs import Program

N, M, K = Dim("N"), Dim("M"), Dim("K")


@relay
def before(
    rows: Tensor[float64, (K, N)], x: Tensor[float64, (K, M)]
) -> tuple[Tensor[Int, (K, M)], Tensor[Int, (K, M)]]:
    return relay.searchsorted(rows, x), relay.searchsorted(rows, x, right=True)


def test_positions_are_those_of_torch_at_ties_and_beyond_the_ends() -> None:
    rows = torch.tensor([[1.0, 2.0, 2.0, 5.0], [-1.0, 0.0, 3.0, 3.0]], dtype=torch.float64)
    x = torch.tensor([[0.0, 2.0, 5.0, 9.0, 3.0], [-1.0, 3.0, 4.0, -2.0, 0.5]], dtype=torch.float64)
    first, behind = before(rows, x)
    assert torch.equal(first, torch.searchsorted(rows, x))
    assert torch.equal(behind, torch.searchsorted(rows, x, right=True))


def test_rows_that_do_not_fit_are_refused_with_their_sizes() -> None:
    program = Program()
    rows, x = (program.parameter(tensor_type(float32, *s)) for s in ((2, 5), (3, 4)))
    with pytest.raises(Clash) as caught:
        searchsorted(rows, x)
    assert caught.value.message == (
        "`searchsorted` has no row of Tensor[Float, (2, 5)] for each row of Tensor[Float, (3, 4)]"
    )
