"""The functions that kernels call: their errors against exact values, and their special values."""

from __future__ import annotations

import math
from typing import Any, Final

import mpmath
import numpy as np
import pytest
import torch

from pyrelay.lower_triton.launching import build
from tests.kernels.running import DEVICE

INF: Final = math.inf
NAN: Final = math.nan
FLOATS: Final = (torch.float32, torch.float64)

ONE: Final = """\
import triton
import triton.language as tl
from pyrelay.lower_triton.math import {name}


@triton.jit
def apply(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, {name}(tl.load(x_ptr + i)))
"""

TWO: Final = """\
import triton
import triton.language as tl
from pyrelay.lower_triton.math import {name}


@triton.jit
def apply(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, {name}(tl.load(x_ptr + i), tl.load(y_ptr + i)))
"""


def run(name: str, *operands: torch.Tensor) -> torch.Tensor:
    """Return a function of blocks of elements, whose number is padded to a power of two."""
    count = operands[0].numel()
    size = max(2, 2 ** math.ceil(math.log2(count)))
    padded = [torch.cat([o, o[:1].expand(size - count)]).to(DEVICE) for o in operands]
    out = torch.full_like(padded[0], 77)
    kernel = build.load((ONE if len(operands) == 1 else TWO).format(name=name), "apply")
    with np.errstate(all="ignore"):
        kernel[(1,)](*padded, out, size)
    return out[:count].cpu()


def spread(low: float, high: float, count: int = 1024) -> np.ndarray:
    """Return numbers from all of an interval, around 1, and close to 0."""
    random = np.random.default_rng(7)
    close = random.choice([-1.0, 1.0], count // 4) * 10.0 ** random.uniform(-6, 0, count // 4)
    usual = random.normal(0.0, 1.0, count // 4)
    whole = random.uniform(low, high, count - 2 * (count // 4))
    return np.clip(np.concatenate([whole, usual, close]), low, high)


def worst_ulps(values: torch.Tensor, exact: list[Any], dtype: torch.dtype) -> float:
    """Return the largest error, in units in the last place of the exact values."""
    spacing = np.float32 if dtype == torch.float32 else np.float64
    errors = (
        abs(mpmath.mpf(v) - e) / abs(float(np.spacing(spacing(abs(float(e))))))
        for v, e in zip(values.tolist(), exact, strict=True)
    )
    return float(max(errors))


FUNCTIONS: Final[dict[str, tuple[float, float, float, float]]] = {
    "exp": (-87, 88, 1, 1),
    "expm1": (-30, 88, 2, 4),
    "log1p": (-0.999, 1e6, 4, 3),
    "tanh": (-25, 25, 4, 5),
    "sigmoid": (-80, 80, 3, 3),
    "sinh": (-89, 89, 4, 4),
    "cosh": (-89, 89, 3, 3),
    "tan": (-10, 10, 3, 3),
    "atan": (-100, 100, 2.5, 2),
    "asin": (-1, 1, 4, 4),
    "acos": (-1, 1, 4, 4),
    "square_root": (0, 1e6, 0.5, 0.5),
    "reciprocal_root": (1e-9, 1e6, 2, 2),
}
EXACT: Final[dict[str, Any]] = {
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "square_root": mpmath.sqrt,
    "reciprocal_root": lambda x: 1 / mpmath.sqrt(x),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_stay_within_the_stated_bounds(name: str, dtype: torch.dtype) -> None:
    low, high, single, double = FUNCTIONS[name]
    x = torch.from_numpy(spread(low, high)).to(dtype)
    with mpmath.workdps(40):
        function = EXACT.get(name) or getattr(mpmath, name)
        exact = [mpmath.re(function(mpmath.mpf(v))) for v in x.tolist()]
        error = worst_ulps(run(name, x), exact, dtype)
    assert error <= (single if dtype == torch.float32 else double)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_as_torch_has_them(name: str, dtype: torch.dtype) -> None:
    torch_name = {"square_root": "sqrt", "reciprocal_root": "rsqrt"}.get(name, name)
    x = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 1e-30, 200.0], dtype=dtype)
    torch.testing.assert_close(
        run(name, x), getattr(torch, torch_name)(x), rtol=1e-5, atol=0, equal_nan=True
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_stay_within_the_stated_bounds(dtype: torch.dtype) -> None:
    random = np.random.default_rng(3)
    x = torch.from_numpy(random.uniform(0.05, 20, 512)).to(dtype)
    y = torch.from_numpy(random.uniform(-12, 12, 512)).to(dtype)
    with mpmath.workdps(40):
        pairs = zip(x.tolist(), y.tolist(), strict=True)
        exact = [mpmath.power(mpmath.mpf(a), mpmath.mpf(b)) for a, b in pairs]
        error = worst_ulps(run("power", x, y), exact, dtype)
    most = float((y * torch.log2(x)).abs().max()) + 2
    assert error <= (1 if dtype == torch.float32 else most)


SPECIAL: Final = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e300]


def pairs(values: list[Any], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    whole = torch.tensor(values, dtype=dtype)
    return whole.repeat_interleave(len(whole)), whole.repeat(len(whole))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("power", torch.pow),
        ("floor_divide", torch.floor_divide),
        ("remainder", torch.remainder),
        ("minimum", torch.minimum),
        ("maximum", torch.maximum),
    ],
)
def test_special_pairs_are_as_torch_has_them(name: str, function: Any, dtype: torch.dtype) -> None:
    x, y = pairs(SPECIAL[:-1], dtype)
    torch.testing.assert_close(run(name, x, y), function(x, y), equal_nan=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainders_of_many_pairs_are_as_torch_has_them(dtype: torch.dtype) -> None:
    random = np.random.default_rng(5)
    x = torch.from_numpy(random.uniform(-50, 50, 512)).to(dtype)
    y = torch.from_numpy(random.uniform(-5, 5, 512)).to(dtype)
    assert torch.equal(run("floor_divide", x, y), torch.floor_divide(x, y))
    torch.testing.assert_close(run("remainder", x, y), torch.remainder(x, y), rtol=1e-6, atol=1e-6)
    tenths = torch.arange(-40, 40, dtype=dtype) / 10
    step = torch.full_like(tenths, 0.1)
    left = run("remainder", tenths, step)
    assert bool(((left >= 0) & (left < step)).all())


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_goes_to_even_halves(dtype: torch.dtype) -> None:
    x = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 7.2, -7.8, 8388609.0, 1e20, INF, NAN])
    x = x.to(dtype)
    torch.testing.assert_close(run("round_even", x), torch.round(x), equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64])
def test_signs_are_as_torch_has_them(dtype: torch.dtype) -> None:
    values = [3.0, -2.0, 0.0, *([NAN, INF] if dtype.is_floating_point else [])]
    x = torch.tensor(values, dtype=dtype)
    torch.testing.assert_close(run("sign", x), torch.sign(x))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_integers_divide_as_in_python(dtype: torch.dtype) -> None:
    x, y = pairs([v for v in range(-9, 10) if v], dtype)
    assert torch.equal(run("integer_floor_divide", x, y), x // y)
    assert torch.equal(run("integer_remainder", x, y), x % y)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_integers_have_powers(dtype: torch.dtype) -> None:
    x, y = pairs(list(range(-4, 8)), dtype)
    assert torch.equal(run("integer_power", x, y), x**y)
