"""Vectors of C compute, compare, convert and round as torch."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch

from pyrelay.lower_c.math import AVX512, PORTABLE, Target, host_target

from .compiled import elementwise

TARGETS = list(dict.fromkeys((host_target(), PORTABLE)))
FLOATS = (torch.float32, torch.float64)
SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
NAMES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.bool: "bool",
    torch.uint8: "u8",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
}
SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0, 7.25, 1e30, -1e30),
    *(float("inf"), float("-inf"), float("nan"), 1e-45, -1e-40, 8388609.0, 0.49999997),
)


def lanes_of(dtype: torch.dtype, target: Target) -> int:
    """Return as many lanes as fit, at most those of 32 bits."""
    return target.register_bytes // max(dtype.itemsize, 4)


def pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return all pairs of special values, and some of random ones."""
    if dtype.is_floating_point:
        values = torch.tensor(SPECIAL, dtype=torch.float64)
        more = torch.randn(301, dtype=torch.float64) * 50
    elif dtype == torch.bool:
        values, more = torch.tensor([0, 1]), torch.randint(0, 2, (301,))
    else:
        info = torch.iinfo(dtype)
        values = torch.tensor([info.min, info.min + 1, -7, -3, -1, 0, 1, 2, 5, info.max])
        values = values.clamp(info.min, info.max)
        more = torch.randint(max(info.min, -100), 100, (301,))
    rows = torch.tensor(list(itertools.product(range(len(values)), repeat=2)))
    first, second = values[rows[:, 0]], values[rows[:, 1]]
    return torch.cat([first, more]).to(dtype), torch.cat([second, more.flip(0)]).to(dtype)


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Check that two tensors are equal, NaN being equal to itself, and signs of zeros alike."""
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    if found.is_floating_point():
        shown = ~expected.isnan()
        assert torch.equal(found.signbit()[shown], expected.signbit()[shown])


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", [*FLOATS, *SIGNED, torch.uint8], ids=str)
def test_comparisons_and_choices(dtype: torch.dtype, target: Target) -> None:
    a, b = pairs(dtype)
    lanes, name = lanes_of(dtype, target), NAMES[dtype]
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        call = f"relay_{op}_{name}xL(a, b)"
        run = elementwise(call, (dtype, dtype), torch.bool, lanes, target)
        same(run(a, b), getattr(torch, op)(a, b))
        chosen = elementwise(
            f"relay_where_{name}xL({call}, a, b)", (dtype, dtype), dtype, lanes, target
        )
        same(chosen(a, b), torch.where(getattr(torch, op)(a, b), a, b))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", [*FLOATS, *SIGNED, torch.uint8], ids=str)
def test_extremes_keep_not_a_number(dtype: torch.dtype, target: Target) -> None:
    a, b = pairs(dtype)
    for op in ("minimum", "maximum"):
        call = f"relay_{op}_{NAMES[dtype]}xL(a, b)"
        run = elementwise(call, (dtype, dtype), dtype, lanes_of(dtype, target), target)
        found, expected = run(a, b), getattr(torch, op)(a, b)
        # of two zeros torch, too, returns either
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def root(x: torch.Tensor) -> torch.Tensor:
    """Return square roots rounded correctly, as torch's are not."""
    with np.errstate(invalid="ignore"):
        return torch.from_numpy(np.sqrt(x.numpy()))


UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "neg": torch.neg,
    "abs": torch.abs,
    "sign": torch.sign,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "round_even": torch.round,
    "square_root": root,
    "reciprocal_root": lambda x: 1 / root(x),
}


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", UNARY)
def test_exact_functions_of_floats(op: str, dtype: torch.dtype, target: Target) -> None:
    a = torch.cat(pairs(dtype))
    call = f"relay_{op}_{NAMES[dtype]}xL(a)"
    found = elementwise(call, (dtype,), dtype, lanes_of(dtype, target), target)(a)
    expected = UNARY[op](a)
    if op == "sign":
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    else:
        same(found, expected)


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
@pytest.mark.parametrize("op", ["neg", "abs", "sign"])
def test_signs_of_integers(op: str, dtype: torch.dtype) -> None:
    a, _ = pairs(dtype)
    call = f"relay_{op}_{NAMES[dtype]}xL(a)"
    found = elementwise(call, (dtype,), dtype, lanes_of(dtype, host_target()))(a)
    same(found, getattr(torch, op)(a))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_division_of_floats(dtype: torch.dtype) -> None:
    a, b = pairs(dtype)
    kept = ~((b.abs() < 1e-30) & (b != 0))  # where torch overflows, of float32
    a, b = a[kept], b[kept]
    lanes, name = lanes_of(dtype, host_target()), NAMES[dtype]
    for op, expected in {
        "fmod": torch.fmod,
        "remainder": torch.remainder,
        "floor_divide": torch.floor_divide,
    }.items():
        run = elementwise(f"relay_{op}_{name}xL(a, b)", (dtype, dtype), dtype, lanes)
        same(run(a, b), expected(a, b))


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
def test_division_of_integers(dtype: torch.dtype) -> None:
    a, b = pairs(dtype)
    lowest = torch.iinfo(dtype).min
    kept = (b != 0) & ~((a == lowest) & (b == -1))
    lanes, name = lanes_of(dtype, host_target()), NAMES[dtype]
    for op, expected in {
        "integer_floor_divide": torch.floor_divide,
        "integer_remainder": torch.remainder,
    }.items():
        run = elementwise(f"relay_{op}_{name}xL(a, b)", (dtype, dtype), dtype, lanes)
        found = run(a, b)  # what is not compared does not trap, either
        same(found[kept], expected(a[kept], b[kept]))
    powers = elementwise(f"relay_integer_power_{name}xL(a, b)", (dtype, dtype), dtype, lanes)
    exponents = b.clamp(0, 12)
    same(powers(a, exponents), torch.pow(a, exponents))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("to", [d for d in NAMES if d not in (torch.float16, torch.bfloat16)])
def test_conversions_of_elements_and_masks(to: torch.dtype, target: Target) -> None:
    for dtype in NAMES:
        if dtype in (torch.float16, torch.bfloat16, to):
            continue
        a = torch.randint(0, 2, (301,)) * torch.randint(-100, 100, (301,))
        a = (a.clamp(min=0) if torch.uint8 in (dtype, to) else a).to(dtype)
        lanes = target.register_bytes // max(dtype.itemsize, to.itemsize, 4)
        call = f"relay_cast_{NAMES[to]}_{NAMES[dtype]}xL(a)"
        same(elementwise(call, (dtype,), to, lanes, target)(a), a.to(to))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
def test_half_types_widen_and_round(half: torch.dtype, target: Target) -> None:
    lanes = target.register_bytes // 4
    everything = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(half)
    same(elementwise("a", (half,), torch.float32, lanes, target)(everything), everything.float())
    bits = torch.arange(-(2**31), 2**31, 2039, dtype=torch.int64).to(torch.int32)
    middles = torch.tensor([0x477FEFFF, 0x477FF000, 0x387FFFFF, 0x33000000, 0x33000001])
    values = torch.cat([bits, middles.to(torch.int32)]).view(torch.float32)
    halves = (everything.float()[:-1] + everything.float()[1:]) / 2
    for x in (values, halves):
        same(elementwise("a", (torch.float32,), half, lanes, target)(x), x.to(half))


def test_a_part_of_a_vector_reads_and_writes_no_more() -> None:
    run = elementwise("a", (torch.float32,), torch.float32, lanes_of(torch.float32, AVX512))
    for count in range(40):
        a = torch.randn(count)
        same(run(a), a)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_loads_at_computed_places_read_only_what_is_asked_for(
    dtype: torch.dtype, target: Target
) -> None:
    computed = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    for lanes in {target.register_bytes // 4, target.register_bytes // 8}:
        if lanes * computed.itemsize > target.register_bytes:
            continue
        place = torch.int64 if lanes * 8 <= target.register_bytes else torch.int32
        table = torch.randint(0, 2, (50,)).to(dtype)
        places = torch.randint(0, 50, (203,)).to(place)
        call = f"relay_gather_{NAMES[dtype]}xL(pb, a)"
        gathered = elementwise(call, (place, dtype), computed, lanes, target, loaded=1)
        same(gathered(places, table), table[places.long()].to(computed))
        far = torch.where(places % 3 == 0, 2**30, places).to(place)
        call = f"relay_gather_where_{NAMES[dtype]}xL(pb, a, relay_lt_{NAMES[place]}xL(a, "
        call += f"relay_splat_{NAMES[place]}xL(50)))"
        chosen = elementwise(call, (place, dtype), computed, lanes, target, loaded=1)
        expected = torch.where(places % 3 == 0, 0, table[places.long()].to(computed))
        same(chosen(far, table), expected.to(computed))
