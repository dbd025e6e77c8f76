"""Loops in several threads, where these do not run; and calls from several at once."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, options, relay
from pyrelay.lower_c.launching import frames
from pyrelay.runtime.calls.runner import Runner
from pyrelay.runtime.compile.program import Program
from tests.unit.lower_c.counted import Counted

pytestmark = pytest.mark.host("lowerings are chosen here")

N = Dim("N")


@relay
def bent(x: Tensor[Float, (N,)]):
    return relay.tanh(x) * x


def test_loops_do_without_threads_that_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    worker = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

    @ctypes.CFUNCTYPE(None, worker, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    def parallel(part: Any, given: int, threads: int, flags: int) -> None:
        asked.append(threads)
        part(given)
        time.sleep(0.05)  # as if another thread came late

    @ctypes.CFUNCTYPE(ctypes.c_int)
    def most_threads() -> int:
        return 2

    @ctypes.CFUNCTYPE(ctypes.c_int)
    def thread() -> int:
        return 0

    functions = (parallel, most_threads, thread)
    found = tuple(ctypes.cast(f, ctypes.c_void_p).value for f in functions)
    monkeypatch.setattr(frames, "thread_functions", lambda: found)
    x = torch.linspace(-3, 3, 100_000)
    with options(lowering="c", cache=False):
        for _ in range(20):
            torch.testing.assert_close(bent(x), torch.tanh(x) * x)
    assert asked == [2, 2]  # the first, and the one after eight without


def region(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    return relay.tanh(x * 1.5) * x


def loop(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
    for _ in range(3):
        x = relay.tanh(x * 1.5) + x
    return x


@pytest.mark.parametrize("function", [region, loop])
def test_threads_that_call_a_new_function_at_once_compile_and_build_it_once(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    for owner, name in ((Runner, "_make"), (Program, "_compile")):
        plain = getattr(owner, name)

        def noted(*args: Any, plain: Any = plain, name: str = name) -> Any:
            made.append(name)
            return plain(*args)

        monkeypatch.setattr(owner, name, noted)
    counted = Counted(monkeypatch)
    new, x = relay(function), torch.linspace(-3, 3, 100)
    together = threading.Barrier(8)

    def call() -> torch.Tensor:
        together.wait(60)
        return new(x)

    with options(lowering="c", cache=False), ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(copy_context().run, call) for _ in range(8)]
        found = [call.result(60) for call in calls]
    assert made == ["_make", "_compile"]
    assert len(counted.texts) == 1
    for value in found:
        torch.testing.assert_close(value, found[0])
