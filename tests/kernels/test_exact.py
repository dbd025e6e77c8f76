"""The comparison with float64: how far kernels may be from it, and what it does not let pass."""

from __future__ import annotations

import pytest
import torch

from tests.kernels.exact import EPS, assert_close, has_float64
from tests.unit.kernels.kernels import kernel

SUM = "def @total[N: Dim](%x: Tensor[(N,), float32]) { sum(%x) }"
NORM = """def @norm[N: Dim](%x: Tensor[(N,), DTYPE]) {
    let %e = exp(%x);
    %e / sum(%e)
}"""


def accepts(source: str, operands: list[torch.Tensor], found: torch.Tensor) -> bool:
    try:
        assert_close(kernel(source), operands, found, operands)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("count", [1, 30, 10_000])
def test_a_sum_may_be_wrong_by_its_length_and_no_more(count: int) -> None:
    x = torch.rand(count)
    exact = x.double().sum()
    assert accepts(SUM, [x], x.sum())
    assert accepts(SUM, [x], (exact * (1 + 2 * EPS)).float())
    assert accepts(SUM, [x], x.cumsum(0)[-1])
    assert not accepts(SUM, [x], (exact * (1 + 40 * count**0.5 * EPS)).float())


@pytest.mark.parametrize(
    ("dtype", "share"), [("float32", 2e-5), ("float16", 4e-3), ("bfloat16", 3e-2)]
)
def test_a_result_may_be_wrong_by_how_it_is_stored(dtype: str, share: float) -> None:
    x = torch.randn(40).to(getattr(torch, dtype))
    source, right = NORM.replace("DTYPE", dtype), x.double().softmax(0)
    assert accepts(source, [x], right.to(x.dtype))
    for wrong in (right * (1 + share), right * (1 - share), right.roll(1)):
        assert not accepts(source, [x], wrong.to(x.dtype))


def test_what_is_exact_stays_exact() -> None:
    source = """def @exact[N: Dim](%x: Tensor[(N,), float32], %i: Tensor[(N,), int64]) {
        let %y = where(greater(%x, 0.0f32), %x, %x * 2.0f32);
        (maximum(%y, flip(%x, dims=(0,))), argmax(%y, dim=0), %i + 1)
    }"""
    x, i = torch.randn(20), torch.arange(20)
    y = torch.where(x > 0, x, 2 * x)
    right = [torch.maximum(y, x.flip(0)), y.argmax(0), i + 1]
    assert_close(kernel(source), [x, i], tuple(right), [x, i])
    for number, by in ((0, 1e-6), (1, 1), (2, 1)):
        wrong = [r + by if n == number else r for n, r in enumerate(right)]
        with pytest.raises(AssertionError, match=f"result {number}"):
            assert_close(kernel(source), [x, i], tuple(wrong), [x, i])


def test_infinity_and_not_a_number_are_where_float32_has_them() -> None:
    source = "def @grow[N: Dim](%x: Tensor[(N,), float32]) { exp(%x) - exp(%x) * 2.0f32 }"
    x = torch.tensor([1.0, 100.0, -torch.inf, torch.nan])
    right = x.exp() - x.exp() * 2
    assert right[1].isnan()
    assert accepts(source, [x], right)
    for place in range(4):
        wrong = right.clone()
        wrong[place] = torch.inf if place == 3 else torch.nan if place != 1 else 0.0
        assert not accepts(source, [x], wrong)


def test_an_operand_that_is_overwritten_is_compared() -> None:
    source = """def @step(%p: Tensor[(5,), float32], %g: Tensor[(5,), float32]) {
        let %_ = overwrite(%p, %p - %g * 0.5f32);
        ()
    }"""
    p, g = torch.randn(5), torch.randn(5)
    assert_close(kernel(source), [p, g], (), [p - g * 0.5, g])
    for wrong in ([p, g], [p - g * 0.5, g + 1]):
        with pytest.raises(AssertionError):
            assert_close(kernel(source), [p, g], (), wrong)
    assert not has_float64(kernel(source))
    assert has_float64(kernel(source.replace("float32", "float64").replace("f32", "f64")))
