"""The functions of real numbers in C keep the bounds that they state."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from pyrelay.lower_c.math import PORTABLE, Mode, Target, bounds, host_target

from .compiled import elementwise

TARGETS = list(dict.fromkeys((host_target(), PORTABLE)))
MODES: tuple[Mode, ...] = ("fast", "exact")
NAMES = {torch.float32: "f32", torch.float64: "f64"}
SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 1e-38),
    *(88.7, 88.8, 89.5, -87.4, -103.9, -104.1, 709.7, 709.9, -745.2, 9.0, 20.0, 1e4, 1e5, 3e38),
)
FUNCTIONS = [op for op in bounds("exact") if op != "power"]


def reference(op: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function of float64: torch's, but where that overflows too early."""
    if op not in ("sinh", "cosh"):
        return getattr(torch, op)

    def by_numpy(x: torch.Tensor) -> torch.Tensor:
        with np.errstate(over="ignore"):
            return torch.from_numpy(getattr(np, op)(x.numpy()))

    return by_numpy


def checked(found: torch.Tensor, expected: torch.Tensor, bound: float) -> None:
    """Check results against exact ones in float64: within so many units in the last place where
    they are normal numbers, all but 0 where they are smaller, and of the right sign and kind."""
    kind = torch.finfo(found.dtype)
    digits = 23 if found.dtype == torch.float32 else 52
    rounded = expected.to(found.dtype)
    assert torch.equal(found.isnan(), rounded.isnan())
    signed = ~rounded.isnan()
    assert torch.equal(found.signbit()[signed], rounded.signbit()[signed])
    is_edge = expected.isfinite() & (expected.abs() > kind.max * 0.999999)
    assert torch.equal(found.isinf()[~is_edge], rounded.isinf()[~is_edge])
    shown = expected.isfinite() & found.isfinite()
    error = (found.double() - expected).abs()[shown]
    _, exponent = torch.frexp(expected[shown])
    unit = torch.ldexp(torch.ones_like(error), exponent - 1 - digits)
    normal = expected[shown].abs() >= kind.smallest_normal
    assert (error <= bound * unit)[normal].all(), (error / unit)[normal].max()
    assert (error[~normal] <= kind.smallest_normal).all()


def every(step: int, begin: int = -(2**31), end: int = 2**31) -> torch.Tensor:
    """Return the float32 numbers of every so many-th pattern of bits."""
    return torch.arange(begin, end, step).to(torch.int32).view(torch.float32)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_of_float32_over_its_range(op: str, target: Target, mode: Mode) -> None:
    step = 16411 if mode == "fast" else 262147
    x = torch.cat([every(step), torch.tensor(SPECIAL)])
    lanes = target.register_bytes // 4
    call = f"relay_{op}_f32xL(a)"
    found = elementwise(call, (x.dtype,), x.dtype, lanes, target, mode)(x)
    checked(found, reference(op)(x.double()), bounds(mode)[op]["f32"])


@pytest.mark.parametrize("op", ["tanh", "erf"])
def test_functions_between_limits_in_vectors_of_every_width(op: str) -> None:
    x = torch.cat([every(4099), torch.tensor(SPECIAL)])
    whole = host_target().register_bytes // 4
    found, *narrow = (
        elementwise(f"relay_{op}_f32xL(a)", (x.dtype,), x.dtype, lanes)(x)
        for lanes in sorted({whole, 8, 4}, reverse=True)
        if lanes <= whole
    )
    for other in narrow:
        torch.testing.assert_close(other, found, rtol=0, atol=0, equal_nan=True)
    assert found[~found.isnan()].abs().max() == 1
    assert (found[x > 10] == 1).all()
    assert (found[x < -10] == -1).all()


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_of_float32_at_every_number(op: str) -> None:
    run = elementwise(
        f"relay_{op}_f32xL(a)", (torch.float32,), torch.float32, host_target().register_bytes // 4
    )
    size = 2**24
    for begin in range(-(2**31), 2**31, size):
        x = every(1, begin, begin + size)
        checked(run(x), reference(op)(x.double()), bounds("fast")[op]["f32"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_of_float64_over_its_range(op: str, target: Target, mode: Mode) -> None:
    generator = torch.Generator().manual_seed(3)
    size = torch.exp2(torch.rand(20_000, generator=generator, dtype=torch.float64) * 40 - 30)
    x = torch.cat([size, -size, every(400_009).double(), torch.tensor(SPECIAL).double()])
    call = f"relay_{op}_f64xL(a)"
    found = elementwise(call, (x.dtype,), x.dtype, target.register_bytes // 8, target, mode)(x)
    checked(found, reference(op)(x), bounds(mode)[op]["f64"] + 1)  # torch's own error


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_powers_of_every_sign(dtype: torch.dtype, target: Target, mode: Mode) -> None:
    values = torch.tensor([*SPECIAL, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 1e10, 8388609.0, -1e-3])
    x, y = (t.flatten().to(dtype) for t in torch.meshgrid(values, values, indexing="ij"))
    more = torch.rand(5000, dtype=torch.float64) * 50
    x, y = torch.cat([x, more.to(dtype)]), torch.cat([y, (more.flip(0) - 25).to(dtype)])
    lanes = target.register_bytes // dtype.itemsize
    call = f"relay_power_{NAMES[dtype]}xL(a, b)"
    found = elementwise(call, (dtype, dtype), dtype, lanes, target, mode)(x, y)
    with np.errstate(all="ignore"):
        expected = torch.from_numpy(np.power(x.double().numpy(), y.double().numpy()))
    bound = bounds(mode)["power"][NAMES[dtype]]
    checked(found, expected, bound + (dtype == torch.float64))


@pytest.mark.parametrize("op", ["exp", "tanh", "sin", "power"])
def test_a_function_of_one_number_has_the_bits_of_the_vectors(op: str) -> None:
    x = torch.randn(100, dtype=torch.float64)
    given = "a, a" if op == "power" else "a"
    vectors = elementwise(f"relay_{op}_f64xL({given})", (x.dtype,), x.dtype, 2)
    number = f"relay_splat_f64xL(relay_{op}_f64({given.replace('a', 'a[0]')}))"
    numbers = elementwise(number, (x.dtype,), x.dtype, 2)
    first = x.repeat_interleave(2)
    torch.testing.assert_close(numbers(first), vectors(first), rtol=0, atol=0, equal_nan=True)
