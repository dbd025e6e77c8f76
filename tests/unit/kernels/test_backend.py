"""A backend from outside the package runs kernels, is shown and explained, and goes again."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, options, relay
from pyrelay.diagnostics.diagnostic import RunError
from pyrelay.kernels.backend import ProgramFunction, Run, register
from tests.unit.kernels.numpy_backend import NumpyBackend

N = Dim("N")


@relay
def wave(x: Tensor[Float, (N, 3)], y: Tensor[Float, (3,)]) -> Tensor[Float, (N, 3)]:
    return relay.tanh(relay.sin(x) * y + 0.5) - x


@relay
def mixed(x: Tensor[Float, (N, 3)], y: Tensor[Float, (3,)]) -> Float:
    return (relay.exp(wave(x, y)) * y).sum() + relay.erf(x).sum()


@pytest.fixture
def backend() -> Generator[NumpyBackend]:
    made = NumpyBackend()
    with register(made):
        yield made


def test_pointwise_kernels_run_on_it(backend: NumpyBackend) -> None:
    x, y = torch.randn(4, 3), torch.randn(3)
    with options(lowering="numpy", verify=True):
        torch.testing.assert_close(wave(x, y), torch.tanh(torch.sin(x) * y + 0.5) - x)
    assert backend.ran == ["kernel.1"]


@relay
def normed(x: Tensor[Float, (N, 4)], w: Tensor[Float, (4,)]) -> Tensor[Float, (N, 4)]:
    return relay.softmax(x * w, dim=1) - x.mean(dim=1, keepdim=True)


def test_row_kernels_run_on_it(backend: NumpyBackend) -> None:
    x, w = torch.randn(5, 4), torch.randn(4)
    expected = normed(x, w)
    with options(lowering="numpy", verify=True):
        torch.testing.assert_close(normed(x, w), expected)
    assert "kernel.1" in backend.ran


@relay
def layers(x: Tensor[Float, (N, 4)], w: Tensor[Float, (4, 4)]) -> Tensor[Float, (N, 4)]:
    for _ in range(3):
        y = relay.softmax(relay.matmul(x, w), dim=1)
        x = relay.sort(y * x, dim=0)[0] - relay.tanh(y).mean(dim=0)
    return relay.softmax(x, dim=1)


def test_regions_run_by_their_tape_in_the_slots_of_the_memory_plan(backend: NumpyBackend) -> None:
    for rows in (3, 7):
        x, w = torch.randn(rows, 4), torch.randn(4, 4)
        expected, gradient = layers(x, w), relay.grad(layers_total, wrt="w")(x, w)
        with options(lowering="numpy", verify=True):
            torch.testing.assert_close(layers(x, w), expected)
            torch.testing.assert_close(relay.grad(layers_total, wrt="w")(x, w), gradient)
    assert {"region.1", "kernel.1"} <= {*backend.ran}


@relay
def layers_total(x: Tensor[Float, (N, 4)], w: Tensor[Float, (4, 4)]) -> Float:
    return (layers(x, w) * x).sum()


@relay
def slope(x: Float) -> Float:
    return relay.cos(x)


def test_a_backend_may_run_other_functions_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    made, asked = NumpyBackend(), list[str]()

    def function(function: ProgramFunction, device: Any, called: Any, fallback: Run) -> Run:
        asked.append(function.name)
        return fallback

    monkeypatch.setattr(made, "function", function)
    with register(made), options(lowering="numpy"):
        assert slope(torch.tensor(0.0)) == 1.0
    assert asked == ["slope"]


def test_what_it_does_not_run_is_left_to_torch(backend: NumpyBackend) -> None:
    x, y = torch.randn(4, 3), torch.randn(3)
    expected, gradient = mixed(x, y), relay.grad(mixed, wrt="x")(x, y)
    with options(lowering="numpy"):
        torch.testing.assert_close(mixed(x, y), expected)
        torch.testing.assert_close(relay.grad(mixed, wrt="x")(x, y), gradient)


def test_its_text_is_shown_and_it_is_explained(backend: NumpyBackend) -> None:
    assert "np.tanh(" in wave.show("numpy")
    with options(lowering="numpy"):
        assert "numpy runs its kernels" in wave.explain()
    assert "['erf'] are not supported" in mixed.show("numpy")


def test_a_name_is_taken_once_and_is_free_again(backend: NumpyBackend) -> None:
    with pytest.raises(ValueError, match="there is a lowering 'numpy' already"):
        register(NumpyBackend())


def test_without_it_the_name_is_unknown() -> None:
    with pytest.raises(ValueError, match="not 'numpy'"), options(lowering="numpy"):
        pass
    with pytest.raises(ValueError, match="there is no stage 'numpy'"):
        wave.show("numpy")


def test_a_device_that_it_does_not_know_is_refused(backend: NumpyBackend) -> None:
    with options(lowering="numpy"), pytest.raises(RunError, match="no memory on other devices"):
        wave(torch.zeros(2, 3, device="meta"), torch.zeros(3, device="meta"))
