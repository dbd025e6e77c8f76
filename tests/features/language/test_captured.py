"""Captured names mean what they mean when a function is called, and changing them costs little."""

from __future__ import annotations

import enum
import importlib
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, float64, relay
from pyrelay.diagnostics.diagnostic import CheckError

N = Dim("N")


class Color(enum.Enum):
    RED = 2.0
    BLUE = 3.0


@dataclass(frozen=True)
class Config:
    rate: float
    name: str = "a"


class Settings:
    rate = 2.0


SCALE: Any = 2.0
LIMITS = (1.0, 2.0)
FLAG = True
COLOR = Color.RED
CONFIG = Config(2.0)
MODULE: Any = types.ModuleType("settings")


@relay
def by_global(x: Float) -> Float:
    return x * SCALE


@relay
def by_local_name(x: Float) -> Float:
    k = SCALE
    total = 0.0
    for _ in range(2):
        total += x * k
    return total / 2


@relay
def by_negation(x: Float) -> Float:
    return -(x * -SCALE)


@relay
def by_callee(x: Float) -> Float:
    return by_global(x)


@relay
def by_module(x: Float) -> Float:
    return x * MODULE.rate


@relay
def by_class(x: Float) -> Float:
    return x * Settings.rate


@relay
def by_config(x: Float) -> Float:
    return x * CONFIG.rate


@relay
def by_enum(x: Float) -> Float:
    return x * COLOR.value


@relay
def by_comparison(x: Float) -> Float:
    return x * 2 if COLOR == Color.RED else x * 3


@relay
def by_flag(x: Float) -> Float:
    if FLAG:
        return x * 2
    return x * 3


@relay
def by_tuple(x: Float) -> Float:
    return x * LIMITS[1]


@relay
def by_text(x: Float) -> Float:
    return x * len(f"{SCALE:.0f}") * SCALE


FUNCTIONS = [v for n, v in list(globals().items()) if n.startswith("by_")]


def set_all(monkeypatch: pytest.MonkeyPatch, factor: float, color: Color) -> None:
    values = {
        "SCALE": factor,
        "LIMITS": (1.0, factor),
        "FLAG": color is Color.RED,
        "COLOR": color,
        "CONFIG": Config(factor),
    }
    for name, value in values.items():
        monkeypatch.setitem(globals(), name, value)
    monkeypatch.setattr(MODULE, "rate", factor, raising=False)
    monkeypatch.setattr(Settings, "rate", factor)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_call_sees_what_a_name_means_then(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for factor, color in ((2.0, Color.RED), (3.0, Color.BLUE), (3.0, Color.BLUE), (2.0, Color.RED)):
        set_all(monkeypatch, factor, color)
        assert function(1.0).item() == factor
        assert function.interpret(1.0).item() == factor


@relay
def mixed(x: Tensor[Float, (N,)], y: Tensor[float64, (N,)]):
    return x * SCALE, y * SCALE + MODULE.rate


def test_a_number_that_changes_takes_the_dtype_it_meets_and_compiles_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = torch.ones(2), torch.ones(2, dtype=torch.float64)
    for step in range(6):
        monkeypatch.setitem(globals(), "SCALE", 0.1 * (step + 1))
        monkeypatch.setattr(MODULE, "rate", 0.3 * step, raising=False)
        first, second = mixed(x, y)
        torch.testing.assert_close(first, x * SCALE, rtol=0, atol=0)
        torch.testing.assert_close(second, y * SCALE + MODULE.rate, rtol=0, atol=0)
    assert mixed.cache_info().hits == 4


@relay
def sloped(x: Tensor[Float, (N,)]) -> Float:
    return relay.leaky_relu(x, negative_slope=SCALE).sum()


def test_a_number_that_must_be_known_compiles_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for slope in (0.5, 0.25, 0.125):
        monkeypatch.setitem(globals(), "SCALE", slope)
        assert sloped(torch.tensor([-1.0, 1.0])).item() == 1.0 - slope


def test_a_number_may_become_a_whole_one_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (2.0, 3.0, 4, 5.0):
        monkeypatch.setitem(globals(), "SCALE", value)
        assert by_global(1.0).item() == value
    monkeypatch.delitem(globals(), "SCALE")
    with pytest.raises(CheckError, match="`SCALE` is not defined"):
        by_global(1.0)


@relay
def scaled_sum(x: Tensor[Float, (N,)]) -> Float:
    return (x * SCALE).sum()


def test_gradients_follow_a_number_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = relay.grad(scaled_sum)
    for factor in (1.5, 2.5, 3.5):
        monkeypatch.setitem(globals(), "SCALE", factor)
        assert gradient(torch.ones(2)).tolist() == [factor, factor]
        weights = torch.ones(2, requires_grad=True)
        scaled_sum(weights).backward()
        assert weights.grad is not None
        assert weights.grad.tolist() == [factor, factor]


def test_closures_see_their_cell_and_defaults_stay() -> None:
    k = 2.0

    @relay
    def by_cell(x: Float, add: float = k) -> Float:
        return x * k + add

    seen: list[float] = []
    for step in range(4):
        k = float(step)
        seen.append(by_cell(1.0).item())
    assert seen == [2.0, 3.0, 4.0, 5.0]


def test_a_function_defined_again_is_the_one_that_is_called() -> None:
    @relay
    def helper(x: Float) -> Float:
        return x * 2

    @relay
    def calls(x: Float) -> Float:
        return helper(x)

    assert calls(1.0).item() == 2.0

    @relay
    def helper(x: Float) -> Float:  # noqa: F811  this is what is tested
        return x * 3

    assert calls(1.0).item() == 3.0


def test_a_module_loaded_again_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "captured_settings.py"
    file.write_text("rate = 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    settings = importlib.import_module("captured_settings")

    @relay
    def by_loaded(x: Float) -> Float:
        return x * settings.rate

    assert by_loaded(1.0).item() == 2.0
    file.write_text("rate = 30.0\n")
    importlib.reload(settings)
    assert by_loaded(1.0).item() == 30.0


def test_what_a_checkpoint_computes_again_reads_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slope = relay.grad(relay.checkpoint(by_global))
    for value in (2.0, 5.0, 7.0):
        monkeypatch.setitem(globals(), "SCALE", value)
        assert slope(3.0) == value
        x = torch.tensor(3.0, requires_grad=True)
        relay.checkpoint(by_global)(x).backward()
        assert x.grad == value
