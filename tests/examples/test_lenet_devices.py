"""LeNet on a GPU: pretended with fake tensors, and for real where there is one."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from pyrelay import relay
from pyrelay.config import options
from tests.pretended_gpu import move_to_pretended_gpu

FOLDER = Path(__file__).parents[2] / "examples" / "lenet"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("lenet")


def places(tensors: Iterable[torch.Tensor]) -> set[str]:
    return {t.device.type for t in tensors}


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
def test_a_training_step_stays_on_a_pretended_gpu(program: Any) -> None:
    model = relay.create_model(program.lenet, seed=0)
    with FakeTensorMode(), options(lowering="torch"):  # kernels read what lies at addresses
        move_to_pretended_gpu(model)
        x = torch.empty(4, 1, 28, 28, device="cuda")
        y = torch.empty(4, dtype=torch.int64, device="cuda")
        value, grads = relay.value_and_grad(model, program.loss, (x, y))
        assert places([value, *grads.values()]) == {"cuda"}
        relay.update_model_params(model, grads, lr=0.05)
        assert places(model.parameters()) == {"cuda"}
        with torch.no_grad():  # torch's autograd takes no pretended device
            assert places([model(x)]) == {"cuda"}


def script(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(FOLDER / "train.py"), *args],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_refused_in_one_line() -> None:
    for name in ("cuda", "nonsense"):
        done = script("--device", name)
        assert done.returncode == 2
        assert f"error: argument --device: torch cannot use '{name}' here" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.gpu
def test_the_losses_on_a_gpu_are_those_on_the_cpu(program: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(8, 16, 1, 28, 28, generator=generator)
    labels = torch.randint(0, 10, (8, 16), generator=generator)
    losses: dict[str, list[float]] = {}
    whole: list[torch.Tensor] = []
    for name in ("cpu", "cuda"):
        model = relay.create_model(program.lenet, seed=0).to(name)
        losses[name] = []
        for x, y in zip(images.to(name), labels.to(name), strict=True):
            value, grads = relay.value_and_grad(model, program.loss, (x, y))
            relay.update_model_params(model, grads, lr=0.05)
            losses[name].append(float(value))
        again = relay.create_model(program.lenet, seed=0).to(name)
        whole.append(program.train(again, images.to(name), labels.to(name)).cpu())
    assert losses["cuda"] == pytest.approx(losses["cpu"], abs=1e-3)
    torch.testing.assert_close(whole[1], whole[0], rtol=1e-3, atol=1e-3)


@pytest.mark.gpu
def test_the_script_trains_on_a_gpu(tmp_path: Path) -> None:
    done = script("--device", "cuda", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    accuracy, exported = re.findall(r"([\d.]+)%", done.stdout)
    assert float(accuracy) >= 97
    assert accuracy == exported
