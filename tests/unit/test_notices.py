"""What takes long is announced while it runs, and nothing else is."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, notices, relay
from pyrelay.runtime.calls.runner import Runner
from pyrelay.runtime.compile.program import Program

N = Dim("N")


class Noticed(logging.Handler):
    """Keeps the texts of notices, and says when there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.is_there = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.is_there.set()


@pytest.fixture
def noticed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the handler of notices, which come at once."""
    monkeypatch.setattr(notices, "_AFTER", 0.0)
    handler, logger = Noticed(), logging.getLogger("pyrelay.compiling")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def test_what_is_soon_over_is_not_announced(
    noticed: Noticed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "_AFTER", 3600.0)
    with notices.announced("too early", logging.getLogger("pyrelay.compiling")):
        pass
    assert noticed.texts == []
    assert not any(isinstance(t, threading.Timer) and t.is_alive() for t in waiting())


def waiting() -> list[threading.Thread]:
    """Return the threads that are left after those that were cancelled have ended."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(timeout=60)
    return threading.enumerate()


@pytest.mark.parametrize(("owner", "method"), [(Runner, "_make"), (Program, "_compile")])
def test_a_compilation_that_takes_long_is_announced(
    owner: type, method: str, noticed: Noticed, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = getattr(owner, method)

    def slow(*args: Any) -> Any:
        assert noticed.is_there.wait(timeout=60)
        return made(*args)

    @relay
    def doubled(x: Tensor[Float, (N,)]) -> Tensor[Float, (N,)]:
        return x + x

    monkeypatch.setattr(owner, method, slow)
    torch.testing.assert_close(doubled(torch.ones(3)), torch.full((3,), 2.0))
    assert "`doubled` is being compiled" in noticed.texts
