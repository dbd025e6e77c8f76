"""Places that are computed and do not exist: lowerings for a CPU raise what torch raises, also
where no element is read at the place."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Int, RunError, Tensor, options, relay
from tests.tolerances import assert_program

pytestmark = pytest.mark.host

N, M, K = Dim("N"), Dim("M"), Dim("K")
Table = Tensor[Float, (N, M)]
Row = Tensor[Float, (1, M)]
Picks = Tensor[Int, (K,)]


@relay
def indexed(x: Table, i: Picks):
    return x[i] * 2.0


@relay
def selected(x: Table, i: Picks):
    return relay.index_select(x, 0, i) * 2.0


@relay
def embedded(x: Table, i: Picks):
    return relay.embedding(i, x) * 2.0


@relay
def gathered(x: Table, i: Picks):
    return relay.gather(x, 0, i.unsqueeze(-1).expand(i.shape[0], x.shape[1])) * 2.0


@relay
def taken(x: Table, i: Picks):
    return relay.take(x, i) * 2.0


@relay
def added(x: Table, i: Picks):
    return relay.index_add(x * 2.0, 0, i, relay.ones((i.shape[0], x.shape[1])))


@relay
def scattered(x: Table, i: Picks):
    at = i.unsqueeze(-1).expand(i.shape[0], x.shape[1])
    return relay.scatter_add(x * 2.0, 0, at, relay.ones((i.shape[0], x.shape[1])))


@relay
def constant(x: Table, i: Picks):
    return relay.zeros_like(x)[i] + 1.0


@relay
def summed(x: Table, i: Picks):
    return relay.zeros_like(x)[i].sum(dim=-1)


@relay
def expanded(x: Table, i: Picks):
    return (x[0] * 2.0).expand(x.shape[0], x.shape[1])[i] * 2.0


@relay
def of_one_row(x: Row, i: Picks):
    return x[i] * 2.0


@relay
def embedded_in_one_row(x: Row, i: Picks):
    return relay.embedding(i, x) * 2.0


@relay
def of_a_computed_row(x: Row, i: Picks):
    return relay.tanh(x * x)[i] * 2.0


@relay
def added_to_one_row(x: Row, i: Picks):
    return relay.index_add(x * 2.0, 0, i, relay.ones((i.shape[0], x.shape[1])))


@relay
def of_four_classes(x: Table, i: Picks):
    return relay.one_hot(i, 4) * 2


ROWS = (
    *(indexed, selected, embedded, gathered, taken, added, scattered, constant, summed, expanded),
    of_four_classes,
)
ONE_ROW = (of_one_row, embedded_in_one_row, of_a_computed_row, added_to_one_row)
WRAPPING = (indexed, taken, constant, summed, expanded, of_one_row, of_a_computed_row)
CASES = [
    *((f, place, 4) for f in ROWS for place in (-13, -5, -1, 0, 3, 4, 12)),
    *((f, place, 1) for f in ONE_ROW for place in (-2, -1, 0, 1)),
]


def exists(function: Any, place: int, rows: int) -> bool:
    """Return whether a function can read at a place of a table of so many rows."""
    size = rows * 3 if function is taken else rows
    return (-size if function in WRAPPING else 0) <= place < size


@pytest.mark.parametrize("lowering", ["torch", "c"])
@pytest.mark.parametrize(
    ("function", "place", "rows"), CASES, ids=lambda v: getattr(v, "__name__", str(v))
)
def test_a_place_that_does_not_exist_is_an_error(
    function: Any, place: int, rows: int, lowering: str
) -> None:
    x, picks = torch.randn(rows, 3), torch.tensor([0, place])
    with options(lowering=lowering):
        if not exists(function, place, rows):
            with pytest.raises(RunError, match=r"out of (bounds|range)"):
                function(x, picks)
            return
        found = function(x, picks)
    with options(lowering="torch"):
        assert_program(found, function(x, picks))


def test_one_place_of_a_dim_of_one_element_is_an_error() -> None:
    for lowering in ("torch", "c"):
        with options(lowering=lowering):
            assert_program(_first(torch.ones(1, 3), -1), torch.full((3,), 2.0))
            with pytest.raises(RunError, match="out of bounds"):
                _first(torch.ones(1, 3), 1)


@relay
def _first(x: Row, i: Int):
    return x[i] * 2.0
