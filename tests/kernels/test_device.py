"""What else must hold on a GPU: nothing waits for it, graphs are recorded once for each shape, and
streams are respected. In the interpreter the same tests run, and no graph is recorded.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import pytest
import torch

from pyrelay import Dim, Float, RunError, Tensor, relay
from pyrelay.config import options
from pyrelay.lower_triton.launching.graphs import RUNS_BEFORE, CudaRecorder
from pyrelay.models import mlp as mlps
from pyrelay.models.mlp import mlp
from tests.kernels.running import DEVICE, IS_INTERPRETED
from tests.kernels.test_programs import mlp_loss, training
from tests.synchronisations import Synchronisations

N = Dim("N")
ENOUGH = RUNS_BEFORE + 2
"""So many runs with the same shapes are the last ones replayed."""


@relay
def scaled(x: Tensor[Float, (N,)], y: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.tanh(x) * y + relay.softmax(x, dim=0)


def model() -> Any:
    return relay.create_model(mlp, seed=0, dims={mlps.D: 7}, hidden=12).to(DEVICE)


def batch(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, 7).to(DEVICE), torch.randint(0, 10, (rows,)).to(DEVICE)


@contextmanager
def never_waiting() -> Generator[None]:
    """Fail if the host waits for the device: torch says so, and so do the operators it calls."""
    with Synchronisations() as seen:
        if IS_INTERPRETED:
            yield
        else:
            torch.cuda.set_sync_debug_mode("error")
            try:
                yield
            finally:
                torch.cuda.set_sync_debug_mode("default")
    assert seen.found == []


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_training_never_waits_for_the_device() -> None:
    trained, x, y = model(), *batch(5)
    step = training(mlp_loss, x, y)
    for _ in range(ENOUGH):
        step(trained)
    with never_waiting():
        for _ in range(3):
            value = step(trained)
    assert bool(value.isfinite())


def test_graphs_are_recorded_for_new_shapes_alone() -> None:
    made: list[Any] = []
    graph = CudaRecorder.graph

    def counted(recorder: CudaRecorder) -> Any:
        made.append(graph(recorder))
        return made[-1]

    counts: list[int] = []
    with patch.object(CudaRecorder, "graph", counted):
        trained, other = model(), model()
        for rows in (5, 8, 5):
            x, y = batch(rows)
            for _ in range(ENOUGH):
                found = training(mlp_loss, x, y)(trained)
                with options(lowering="torch"):
                    expected = training(mlp_loss, x, y)(other)
                torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
            counts.append(len(made))
    if IS_INTERPRETED:
        assert counts == [0, 0, 0]
    else:
        assert 0 < counts[0] < counts[1]
        assert counts[1] <= 2 * counts[0]
        assert counts[2] == counts[1] or counts[2] <= 3 * counts[0]  # new batches lie elsewhere
    for one, another in zip(trained.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, another, rtol=1e-4, atol=1e-5)


def test_kernels_run_on_the_current_stream() -> None:
    side = nullcontext() if IS_INTERPRETED else torch.cuda.stream(torch.cuda.Stream())
    y = torch.ones(40, device=DEVICE)
    for number in range(ENOUGH):
        with side:
            x = torch.zeros(40, device=DEVICE)
            if not IS_INTERPRETED:
                torch.cuda._sleep(10_000_000)  # on another stream kernels would read zeros
            x.fill_(float(number))
            found = scaled(x, y)
        if not IS_INTERPRETED:
            torch.cuda.synchronize()
        expected = torch.tanh(torch.tensor(float(number))) + 1 / 40
        torch.testing.assert_close(found.cpu(), expected.expand(40))


def test_arguments_on_two_devices_are_refused() -> None:
    x = torch.ones(4, device=DEVICE)
    elsewhere = torch.ones(4, device="meta" if IS_INTERPRETED else "cpu")
    for arguments in ((x, elsewhere), (elsewhere, x)):
        with pytest.raises(RunError, match=f"`scaled` got tensors on .*{DEVICE.type}"):
            scaled(*arguments)


def test_results_stay_on_the_device() -> None:
    x = torch.randn(9, device=DEVICE)
    assert scaled(x, x).device.type == DEVICE.type
