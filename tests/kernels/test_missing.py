"""A missing part of the kernel toolchain is reported once, with the remedy."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from pyrelay.config import options
from pyrelay.diagnostics.diagnostic import RunError
from pyrelay.diagnostics.source import NOWHERE
from pyrelay.kernels.calling import Layout, NoKernel
from pyrelay.lower_triton.backend import ON_GPU
from pyrelay.lower_triton.kernel import Lowered, Target
from pyrelay.lower_triton.launching import build, launch
from pyrelay.lower_triton.launching.build import NoTriton
from pyrelay.lower_triton.launching.launch import KernelCall
from pyrelay.lower_triton.launching.prepare import Question
from pyrelay.runtime.compile.lowerings import lowering_on
from tests.kernels.running import CPU
from tests.kernels.test_launch import SCALE, function_of, scaled

CUDA = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def forgetful() -> Any:
    """Have nothing known of what is installed, before and after."""
    known = (build.triton_module, build.check_driver, launch._say_once)
    for function in known:
        function.cache_clear()
    yield
    for function in known:
        function.cache_clear()


def why(lowering: str, device: torch.device) -> str:
    """Return the message where kernels are not available."""
    with options(lowering=lowering), pytest.raises(RunError) as raised:
        lowering_on(device, NOWHERE)
    return str(raised.value)


def installed(monkeypatch: pytest.MonkeyPatch, version: str, **about: Any) -> None:
    """Have a Triton of a version, and nothing in it but what is given."""
    made = ModuleType("triton")
    vars(made).update(__version__=version, knobs=SimpleNamespace(), **about)
    monkeypatch.setitem(sys.modules, "triton", made)
    monkeypatch.setitem(sys.modules, "triton.knobs", made.knobs)


def test_without_triton_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    assert "triton is not installed: pip install triton" in why("triton", CUDA)


def test_a_triton_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "3.4.1")
    assert "triton 3.4.1 is too old: pip install 'triton>=3.5'" in why("triton", CUDA)


def test_a_numpy_that_is_too_new_for_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    class Refusing:
        def __int__(self) -> int:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")

    installed(monkeypatch, "3.6.0")
    monkeypatch.setattr(np, "zeros", lambda *_: Refusing())
    assert "pip install 'numpy<2.4', or 'triton>=3.7'" in why("triton-interpret", CPU)


@pytest.mark.parametrize(("lowering", "device"), [("triton", CPU), ("triton-interpret", CUDA)])
def test_kernels_are_not_had_on_another_device(lowering: str, device: torch.device) -> None:
    assert f"this call is on {device}" in why(lowering, device)


class Driver:
    """Triton's drivers, of which none can be used."""

    def __init__(self, says: str) -> None:
        self._says = says

    @property
    def active(self) -> Any:
        raise RuntimeError(self._says)


def test_without_a_driver_triton_says_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = SimpleNamespace(driver=Driver("0 active drivers ([]). There should only be one."))
    installed(monkeypatch, "3.9.0", runtime=runtime)
    said = why("triton", CUDA)
    assert "triton cannot start kernels: 0 active drivers ([])" in said
    assert "compiler" not in said


def test_without_a_compiler_it_is_said_which_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = SimpleNamespace(driver=Driver("Failed to find C compiler.\nPlease specify one"))
    installed(monkeypatch, "3.9.0", runtime=runtime)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    said = why("triton", CUDA)
    assert "it needs a C compiler, and there is no gcc or clang or cc: install gcc" in said


def test_what_is_there_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def target() -> None:
        looked.append(1)

    active = SimpleNamespace(get_current_target=target)
    installed(monkeypatch, "3.9.0", runtime=SimpleNamespace(driver=SimpleNamespace(active=active)))
    with options(lowering="triton"):
        for _ in range(3):
            assert lowering_on(CUDA, NOWHERE) is ON_GPU
    assert looked == [1]


def test_triton_says_why_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(NoTriton, match="pip install triton"):
        build.triton_module()


def test_code_without_a_kernel_is_mentioned_once(caplog: pytest.LogCaptureFixture) -> None:
    def refused(layout: Layout, _: Target) -> Lowered:
        raise NoKernel("it takes a diagonal")

    with caplog.at_level(logging.WARNING, "pyrelay.kernels"):
        for _ in range(3):
            call = KernelCall(function_of(SCALE), refused, CPU, in_torch=lambda x, k: x * k)
            call(torch.ones(2, 3), 5)
    assert [r.getMessage() for r in caplog.records] == [
        "code runs as calls of torch and not as a kernel: it takes a diagonal"
    ]


def test_a_kernel_that_does_not_fit_the_device_is_mentioned_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def choose(question: Question, attempts: Sequence[Callable[[], object]]) -> int:
        raise build.triton_error()("out of resource: shared memory, Required: 262144")

    x = torch.ones(2, 3)
    with caplog.at_level(logging.WARNING, "pyrelay.kernels"):
        call = KernelCall(function_of(SCALE), ways, CPU, choose, lambda x, k: x * k)
        for factor in (5, 6):
            assert torch.equal(call(x, factor), x * factor)
        with pytest.raises(build.triton_error(), match="out of resource"):
            KernelCall(function_of(SCALE), ways, CPU, choose)(x, 5)
    assert [r.getMessage() for r in caplog.records] == [
        "code runs as calls of torch, since no kernel for it runs here: "
        "out of resource: shared memory, Required: 262144"
    ]


def ways(layout: Layout, target: Target) -> Lowered:
    """Return the kernel of `SCALE` in two configurations, so that one is chosen."""
    (kernel,) = scaled(layout).kernels
    (config,) = kernel.configs
    wider = replace(config, num_warps=2 * config.num_warps)
    return Lowered((replace(kernel, configs=(config, wider)),))
