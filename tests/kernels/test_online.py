"""Long rows are read no more than they must be: what needs another result is summed with it."""

from __future__ import annotations

import math

import pytest
import torch

from pyrelay.lower_triton.rows import rows
from tests.kernels.running import check, kernels
from tests.kernels.test_rows import BATCH_NORM, CROSS_ENTROPY, LAYER_NORM, SOFTMAX, shorten

LONG_NORM = LAYER_NORM.replace("48", "70")
LOGSUMEXP = """def @total[N: Dim, M: Dim](%x: Tensor[(N, M), float32]) {
    let %m = amax(%x, dim=(1,), keepdim=True);
    let %top = where(isfinite(%m), %m, 0.0f32);
    log(sum(exp(%x - %top), dim=(1,), keepdim=True)) + %top
}"""
EXPECTED = """def @expected[N: Dim, M: Dim](
    %x: Tensor[(N, M), float32], %w: Tensor[(N, M), float32]) {
    let %m = amax(%x, dim=(1,), keepdim=True);
    let %e = exp(%x - %m);
    (sum(%e * %w, dim=(1,)), mean(%e, dim=(1,)), sum(%w * %e, dim=(1,)), reshape(%m, shape=(N,)))
}"""
VARIANCES = """def @variances[N: Dim, M: Dim](%x: Tensor[(N, M), float32]) {
    let %mean = mean(%x, dim=(1,), keepdim=True);
    let %centred = %x - %mean;
    (reshape(%mean, shape=(N,)), sum(%centred * %centred, dim=(1,)),
     mean(%centred * %centred, dim=(1,)))
}"""


@pytest.fixture(params=["loop", "pieces"], autouse=True)
def long_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of more than 32 elements are gone through in a loop, or by several programs."""
    shorten(monkeypatch)
    if request.param == "pieces":
        monkeypatch.setattr(rows, "longest_loop", lambda kernels, moved, *, is_column: 32)
    else:
        monkeypatch.setattr(rows, "few_rows", lambda is_column: 0)


def long(source: str) -> str:
    """Return a function for rows of 70 elements."""
    return source.replace("M)", "70)").replace(", M: Dim", "")


@pytest.mark.parametrize(
    ("source", "reads"),
    [(long(SOFTMAX), 2), (LONG_NORM, 2), (long(LOGSUMEXP), 1), (long(EXPECTED), 1)],
    ids=["softmax", "norm", "logsumexp", "expected"],
)
def test_a_row_is_read_once_for_its_sums_and_once_more_for_what_is_stored(
    source: str, reads: int
) -> None:
    found = "".join(k.text for k in kernels(source))
    assert found.count("tl.load(x_ptr") == reads


def test_long_rows_give_what_the_evaluator_gives() -> None:
    x = torch.randn(3, 70)
    check(SOFTMAX, x)
    check(SOFTMAX, torch.randn(70, 3).T)
    check(SOFTMAX.replace("float32", "float64"), x.double())
    check(LONG_NORM, x, torch.randn(70), torch.randn(70))
    check(LOGSUMEXP, 50 * x)
    check(EXPECTED, 9 * x, torch.randn(3, 70))
    check(BATCH_NORM, torch.randn(9, 3, 4, 5))
    check(CROSS_ENTROPY, x, torch.randint(0, 70, (3,)))


@pytest.mark.parametrize("source", [SOFTMAX, LOGSUMEXP], ids=["softmax", "logsumexp"])
def test_infinities_and_not_a_number_are_where_they_should_be(source: str) -> None:
    x = torch.randn(9, 70)
    x[0] = -math.inf
    x[1, :69] = -math.inf
    x[2, 1:] = -math.inf
    x[3, 5] = x[3, 60] = math.inf
    x[4, 7] = math.nan
    x[5, :40] = -math.inf
    x[6] = torch.arange(70.0) * 1e30
    x[7] = -torch.arange(70.0) * 1e30
    x[8] = -torch.finfo(torch.float32).max
    check(source, x)


@pytest.mark.parametrize("length", [1, 33, 64, 70])
def test_variances_are_exact_where_the_mean_is_far_from_zero(length: int) -> None:
    x = torch.randn(3, length)
    check(VARIANCES, x)
    check(VARIANCES.replace("float32", "float64"), 1e3 + x.double())
    # Sums of squares would be wrong in the third digit here; a mean of a lane is rounded by 2**-16.
    far = 256 + torch.randint(0, 64, (3, length)) / 8
    check(VARIANCES, far)


def test_a_variance_of_no_elements_is_not_a_number() -> None:
    check(VARIANCES, torch.randn(3, 0))
