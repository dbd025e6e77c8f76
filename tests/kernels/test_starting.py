"""Starts of kernels, on a driver and compiled kernels that only note their arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

import pytest
import torch

from pyrelay.lower_triton.launching import launch, start, tape, versions
from pyrelay.lower_triton.launching.launch import KernelCall
from pyrelay.lower_triton.launching.start import Address
from tests.kernels.running import CPU
from tests.kernels.test_launch import SCALE, SUM, function_of, scaled, summed

STREAM: Final = 17


@dataclass
class Compiled:
    """A compiled kernel that notes its starts."""

    name: str
    starts: list[tuple[Any, ...]]
    function: str = "handle"
    packed_metadata: tuple[int, ...] = (1, 2)

    def run(self, *told: Any) -> None:
        self.starts.append((self.name, *told))

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        return lambda *told, stream: self.starts.append((self.name, grid, stream, *told))


@dataclass
class Jit:
    """A kernel's function as Triton makes it: started in Triton's way, it notes the arguments."""

    name: str
    arg_names: list[str]
    compilations: list[tuple[Any, ...]]
    starts: list[tuple[Any, ...]]

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Compiled]:
        def run(*args: Any, **named: Any) -> Compiled:
            self.compilations.append((self.name, grid, args, named))
            return Compiled(self.name, self.starts)

        return run


@dataclass
class Gpu:
    """The calls that a pretended device received."""

    compilations: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    starts: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])

    def get_current_device(self) -> int:
        return 0

    def get_current_target(self) -> Any:
        return SimpleNamespace(backend="cuda", arch=90)

    def get_current_stream(self, device: int) -> int:
        assert device == 0
        return STREAM


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    made = Gpu()

    def function(kernel: Any) -> Jit:
        names = [*kernel.names, *(name for name, _ in kernel.configs[0].constants)]
        return Jit(kernel.name, names, made.compilations, made.starts)

    monkeypatch.setattr(start, "function_of", function)
    for place in (launch, tape):
        monkeypatch.setattr(place, "interprets", lambda: False)
    monkeypatch.setattr(launch, "current_driver", lambda: made)
    return made


def test_the_first_start_is_tritons_and_later_ones_pass_addresses(gpu: Gpu) -> None:
    call = KernelCall(function_of(SCALE), scaled, CPU)
    x = torch.zeros(6, 3)
    out = call(x, 5)
    ((name, grid, args, named),) = gpu.compilations
    assert (name, grid) == ("scale", (3, 1, 1))
    assert args == (
        *(Address(x.data_ptr(), torch.float32), 3, 1, 5),
        *(Address(out.data_ptr(), torch.float32), 18),
    )
    assert named["BLOCK"] == 8
    assert not gpu.starts
    y = torch.zeros(6, 3)
    out = call(y, 7)
    assert len(gpu.compilations) == 1
    assert gpu.starts == [
        (
            *("scale", 3, 1, 1, STREAM, "handle", (1, 2), None, None, None),
            *(y.data_ptr(), 3, 1, 7, out.data_ptr(), 18, 8),
        )
    ]


def test_addresses_that_are_aligned_otherwise_have_a_compiled_form_of_their_own(gpu: Gpu) -> None:
    call = KernelCall(function_of(SCALE), scaled, CPU)
    whole = torch.zeros(40)
    aligned, odd = whole[4:10].reshape(2, 3), whole[1:7].reshape(2, 3)
    assert aligned.data_ptr() % 16 == 0
    for operand in (aligned, odd, aligned, odd):
        call(operand, 2)
    assert [c[2][0].value for c in gpu.compilations] == [aligned.data_ptr(), odd.data_ptr()]
    assert [s[10] for s in gpu.starts] == [aligned.data_ptr(), odd.data_ptr()]


def test_all_kernels_of_a_group_run_on_one_set_of_storage(gpu: Gpu) -> None:
    call = KernelCall(function_of(SUM), summed, CPU)
    x, y = torch.zeros(9), torch.zeros(9)
    call(x, y)
    total, copy = call(x, y)
    parts, whole = (s[10:] for s in gpu.starts)
    assert parts[:2] == (x.data_ptr(), y.data_ptr())
    assert parts[3] == copy.data_ptr()
    assert whole[:2] == (parts[2], total.data_ptr())


def test_a_profiler_hears_of_every_start(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton import knobs

    call = KernelCall(function_of(SCALE), scaled, CPU)
    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", lambda metadata: None)
    for _ in range(3):
        call(torch.zeros(6, 3), 5)
    assert len(gpu.compilations) == 3
    assert not gpu.starts


def test_a_triton_that_is_not_known_is_asked_in_its_public_way(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "version_of", lambda _: (3, 99))
    call = KernelCall(function_of(SCALE), scaled, CPU)
    x = torch.zeros(6, 3)
    call(x, 5)
    out = call(x, 5)
    assert gpu.starts == [
        ("scale", (3, 1, 1), STREAM, x.data_ptr(), 3, 1, 5, out.data_ptr(), 18, 8)
    ]


def test_tritons_own_compiler_makes_what_is_started() -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON", "PYRELAY"))}
    command = [sys.executable, "-m", "tests.kernels.on_no_gpu"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
