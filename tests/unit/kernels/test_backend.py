"""A backend from outside the package runs kernels, is shown and explained, and goes again."""

from __future__ import annotations

from collections.abc import Generator

import pytest
import torch

from pyrelay import Dim, Float, Tensor, options, relay
from pyrelay.diagnostics.diagnostic import RunError
from pyrelay.kernels.backend import register
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


def test_what_it_does_not_run_is_left_to_torch(backend: NumpyBackend) -> None:
    x, y = torch.randn(4, 3), torch.randn(3)
    expected, gradient = mixed(x, y), relay.grad(mixed, wrt="x")(x, y)
    with options(lowering="numpy"):
        torch.testing.assert_close(mixed(x, y), expected)
        torch.testing.assert_close(relay.grad(mixed, wrt="x")(x, y), gradient)


def test_its_text_is_shown_and_it_is_explained(backend: NumpyBackend) -> None:
    assert "np.tanh(" in wave.show("numpy")
    with options(lowering="numpy"):
        assert "numpy runs its pointwise kernels" in wave.explain()
    assert "kernels are not supported" in mixed.show("numpy")


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
