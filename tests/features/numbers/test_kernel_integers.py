"""Integers of every width in kernels wrap around as torch's do, and are never divided by 0."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from pyrelay import Any as AnySize
from pyrelay import Dim, RunError, Tensor, int8, int16, int32, int64, options, relay, uint8

pytestmark = pytest.mark.host

N = Dim("N")
LOWERINGS = ("evaluator", "torch", "c")


def programs(dtype: Any) -> dict[str, Any]:
    """Return programs over tensors of a dtype of integers."""

    @relay
    def operators(x: Tensor[dtype, (N,)], y: Tensor[dtype, (N,)]):
        return x + y, x - y, x * y, -x, relay.abs(x), relay.minimum(x, y), x & y, x ^ y, ~x, x < y

    @relay
    def divided(x: Tensor[dtype, (N,)], y: Tensor[dtype, (N,)]):
        return x // y, x % y

    @relay
    def chained(x: Tensor[dtype, (N,)], y: Tensor[dtype, (N,)]):
        return ((x * 3 + y) * (y - 7) + x) * 5

    @relay
    def reduced(x: Tensor[dtype, (N, AnySize)]):
        return x.sum(dim=1), (x * x).sum(dim=0), relay.amax(x, dim=1), relay.cumsum(x, dim=1)

    @relay
    def guarded(x: Tensor[dtype, (N,)], y: Tensor[dtype, (N,)]):
        return relay.where(y == 0, x, x // relay.where(y == 0, 1, y))

    return {f.__name__: f for f in (operators, divided, chained, reduced, guarded)}


PROGRAMS = {
    torch_dtype: programs(dtype)
    for dtype, torch_dtype in (
        (int8, torch.int8),
        (int16, torch.int16),
        (int32, torch.int32),
        (int64, torch.int64),
        (uint8, torch.uint8),
    )
}


def pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return all pairs of integers of interest, as two tensors."""
    limits = torch.iinfo(dtype)
    values = [limits.min, limits.min + 1, 0, 1, 2, 3, 100, limits.max - 1, limits.max]
    values += [-1, -2, -7] if limits.min < 0 else []
    first, second = zip(*itertools.product(values, values), strict=True)
    return torch.tensor(first, dtype=dtype), torch.tensor(second, dtype=dtype)


def assert_same(found: Any, wanted: Any) -> None:
    """Compare tensors, dtypes included."""
    found, wanted = (v if isinstance(v, tuple) else (v,) for v in (found, wanted))
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("dtype", PROGRAMS, ids=str)
def test_elements_wrap_around_as_in_torch(dtype: torch.dtype, lowering: str) -> None:
    x, y = pairs(dtype)
    rows = x[:72].reshape(8, 9)
    program = PROGRAMS[dtype]
    with options(lowering=lowering):
        assert_same(
            program["operators"](x, y),
            (x + y, x - y, x * y, -x, abs(x), x.minimum(y), x & y, x ^ y, ~x, x < y),
        )
        assert_same(program["chained"](x, y), ((x * 3 + y) * (y - 7) + x) * 5)
        assert_same(
            program["reduced"](rows),
            (rows.sum(1), (rows * rows).sum(0), rows.amax(1), rows.cumsum(1)),
        )


@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("dtype", PROGRAMS, ids=str)
def test_quotients_are_rounded_down_and_no_divisor_is_zero(
    dtype: torch.dtype, lowering: str
) -> None:
    x, y = pairs(dtype)
    program = PROGRAMS[dtype]
    # The quotient of the least integer and -1 does not exist, and torch may stop at it.
    exists = ~((x == torch.iinfo(dtype).min) & (y == -1)) if dtype.is_signed else y >= 0
    x, y = x[exists], y[exists]
    a, b, ones = x[y != 0], y[y != 0], torch.where(y == 0, 1, y)
    with options(lowering=lowering):
        assert_same(program["divided"](a, b), (a.div(b, rounding_mode="floor"), a % b))
        wanted = torch.where(y == 0, x, x.div(ones, rounding_mode="floor"))
        assert_same(program["guarded"](x, y), wanted)
        with pytest.raises(RunError, match="RL503"):
            program["divided"](x, y)
