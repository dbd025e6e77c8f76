"""Arithmetic means the same on numbers, on 0-d tensors and on tensors: Python's for integers,
torch's for floats."""

from __future__ import annotations

import math

import pytest
import torch

from tests.unit.runtime.host.programs import compiled, run_both

INTEGER = "def @main(%a: int64, %b: int64) {{ {0}(%a, %b) }}"
TENSOR = "def @main(%a: Tensor[(4,), {1}], %b: Tensor[(4,), {1}]) {{ {0}(%a, %b) }}"
PAIRS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5)]

PYTHON = {
    "floor_divide": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "minimum": min,
    "maximum": max,
    "less": lambda a, b: a < b,
    "not_equal": lambda a, b: a != b,
}


@pytest.mark.parametrize("name", PYTHON)
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_integers_are_pythons_in_every_form(name: str, a: int, b: int) -> None:
    source = INTEGER.format(name)
    expected = PYTHON[name](a, b)
    tensors = (torch.tensor(a), torch.tensor(b))
    for args in ((a, b), tensors, (a, tensors[1]), (tensors[0], b)):
        assert run_both(source, *args) == expected


@pytest.mark.parametrize("name", ["floor_divide", "mod"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64"])
def test_division_rounds_towards_minus_infinity(name: str, dtype: str) -> None:
    a = torch.tensor([7, -7, 7, -7]).to(getattr(torch, dtype))
    b = torch.tensor([2, 2, -2, -2]).to(getattr(torch, dtype))
    found = run_both(TENSOR.format(name, dtype), a, b)
    assert found.dtype == a.dtype
    expected = [PYTHON[name](x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert found.tolist() == expected


def test_rounding_is_half_to_even() -> None:
    x = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5])
    found = run_both("def @main(%x: Tensor[(5,), float32]) { round(%x) }", x)
    assert found.tolist() == [0.0, 2.0, 2.0, -0.0, -2.0]


@pytest.mark.parametrize("exponent", [2, 0.5, 3, -1, 2.5])
def test_powers_with_a_literal_exponent_are_torchs(exponent: float) -> None:
    x = torch.rand(50) + 0.1
    source = f"def @main(%x: Tensor[(50,), float32]) {{ power(%x, {exponent}) }}"
    torch.testing.assert_close(run_both(source, x), x**exponent)


def test_powers_of_integers_are_integers_or_an_error() -> None:
    source = "def @main(%a: int64, %b: int64) { power(%a, %b) }"
    assert run_both(source, -3, 3) == -27
    with pytest.raises(Exception, match="negative"):
        compiled(source)(2, -1)


def test_a_comparison_with_nan_is_false() -> None:
    source = "def @main(%a: float32, %b: float32) { (less(%a, %b), equal(%a, %a)) }"
    nan = torch.tensor(math.nan)
    assert tuple(map(bool, run_both(source, nan, torch.tensor(0.0)))) == (False, False)


def test_the_extremes_of_nan_are_nan() -> None:
    x = torch.tensor([math.nan, 1.0, -1.0])
    found = compiled("def @main(%x: Tensor[(3,), float32]) { maximum(%x, 0.0) }")(x)
    assert math.isnan(found[0])
    assert found[1:].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("condition", [True, torch.tensor(True)])
def test_a_choice_between_numbers_takes_a_number_as_condition(condition: object) -> None:
    source = "def @main(%c: bool, %n: int64) { where(%c, %n, 3) }"
    assert run_both(source, condition, 7) == 7
    source = "def @main(%c: bool, %x: Tensor[(2,), float32]) { where(%c, %x, 1.5) }"
    assert run_both(source, condition, torch.zeros(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n", [3, torch.tensor(3)])
def test_casts_take_numbers_and_tensors(n: object) -> None:
    source = """def @main(%n: int64) {
      (cast(%n, dtype=float32), cast(%n, dtype=int32), cast(%n, dtype=bool), divide(%n, 2))
    }"""
    as_float, as_int, as_bool, half = run_both(source, n)
    assert as_float.dtype == torch.float32
    assert (float(as_float), int(as_int), bool(as_bool), float(half)) == (3.0, 3, True, 1.5)


def test_a_product_added_to_a_tensor_is_one_call() -> None:
    source = """def @main(%p: Tensor[(3,), float32], %g: Tensor[(3,), float32]) {
      sgd_step(%p, %g, 0.5)
    }"""
    text = compiled(source).source
    assert text.count("torch.addcmul(") == 1
    assert run_both(source, torch.ones(3), torch.full((3,), 2.0)).tolist() == [0.0, 0.0, 0.0]
