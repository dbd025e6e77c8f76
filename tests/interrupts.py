"""Interrupts at every place where Python can raise one, instead of at a time.

Python looks for Ctrl-C between its instructions. `each_interrupt` runs a function again and again,
and calls the handler of Ctrl-C, as Python does, at the first event of the tracer, then at the
second, and so on.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar, final

import torch

T = TypeVar("T")


@final
class _Tracer:
    """Counts the events of a thread; raises KeyboardInterrupt at one of them."""

    def __init__(self, at: int | None, *, instructions: bool) -> None:
        self.count = 0
        self._at = at
        self._instructions = instructions

    def __call__(self, frame: FrameType, event: str, argument: Any) -> _Tracer:
        frame.f_trace_opcodes = self._instructions
        if event in ("line", "opcode", "return"):
            self.count += 1
            if self.count == self._at:
                _press(frame)
        return self


def _press(frame: FrameType) -> None:
    """Do what Python does when it finds that Ctrl-C was pressed."""
    handler = signal.getsignal(signal.SIGINT)
    assert callable(handler)
    handler(signal.SIGINT, frame)


@contextmanager
def _with_handler() -> Generator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def each_interrupt(
    make: Callable[[], T], run: Callable[[T], object], *, instructions: bool = False, every: int = 1
) -> Iterator[T]:
    """Yield what `make` gives after each interrupted `run` of it: interrupted at each line, or each
    of Python's instructions, or every so many of these."""
    made = make()
    whole = _traced(lambda: run(made), None, instructions=instructions)
    for at in range(1, whole + 1, every):
        found = make()
        _traced(lambda subject=found: run(subject), at, instructions=instructions)
        yield found


def each_signal(make: Callable[[], T], run: Callable[[T], object]) -> Iterator[T]:
    """Yield what `make` gives after each `run` of it that is interrupted where Python looks for
    signals: as a function of Python's begins, and as a call of C's ends."""
    made = make()
    for at in range(1, _signalled(lambda: run(made), None) + 1):
        found = make()
        _signalled(lambda subject=found: run(subject), at)
        yield found


def _signalled(run: Callable[[], object], at: int | None) -> int:
    count = 0

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        if event not in ("call", "c_return"):
            return
        count += 1
        if count == at:
            sys.setprofile(None)
            _press(frame)

    with _with_handler():
        sys.setprofile(profile)
        try:
            run()
        except KeyboardInterrupt:
            assert at is not None
        finally:
            sys.setprofile(None)
    return count


def _traced(run: Callable[[], object], at: int | None, *, instructions: bool) -> int:
    tracer = _Tracer(at, instructions=instructions)
    before = sys.gettrace()
    with _with_handler():
        sys.settrace(tracer)
        try:
            run()
        except KeyboardInterrupt:
            assert at is not None
        finally:
            sys.settrace(before)
            torch.set_grad_enabled(mode=True)  # torch.no_grad() may have been left without its end
    return tracer.count
