"""Ctrl-C that waits for what must be whole.

Python raises KeyboardInterrupt between any two of its instructions. What consists of several of
them, and may not be left in the middle, runs `uninterrupted`. A list of calls of functions written
in C needs none of this (`runtime/models/commit.py`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def uninterrupted(run: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return the result of a call, during which Ctrl-C waits: its handler, which raises
    KeyboardInterrupt, runs when the call has ended.

    >>> uninterrupted(max, 1, 2)
    2
    """
    handler = signal.getsignal(signal.SIGINT)
    # Python runs handlers in the main thread alone.
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        return run(*args, **kwargs)
    waiting: list[tuple[int, FrameType | None]] = []

    def wait(number: int, frame: FrameType | None) -> None:
        waiting.append((number, frame))

    signal.signal(signal.SIGINT, wait)
    try:
        return run(*args, **kwargs)
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            handler(*waiting[-1])
