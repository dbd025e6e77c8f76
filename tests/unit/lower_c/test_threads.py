"""Loops in several threads, where these do not run."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, options, relay
from pyrelay.lower_c.launching import frames

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
