"""C that runs long can be interrupted, and lets other threads run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from pyrelay import Int, options, relay

pytestmark = pytest.mark.host("lowerings are chosen here")


class AlarmError(Exception):
    """What the handler of a signal raises."""


@contextmanager
def alarm() -> Iterator[None]:
    """Have a signal raise an exception soon."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise AlarmError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@relay
def forever(n: Int) -> Int:
    while n > 0:
        n = n % 7 + 1
    return n


@relay
def fib(n: Int) -> Int:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@relay
def deep(n: Int, m: Int) -> Int:
    if n == 0:
        return fib(m)
    return deep(n - 1, m) + 1


def test_a_loop_without_an_end_is_interrupted() -> None:
    with options(lowering="c"):
        assert forever(0) == 0
        with pytest.raises(AlarmError), alarm():
            forever(1)


def test_recursion_is_interrupted_on_each_stack() -> None:
    with options(lowering="c"):
        assert deep(10, 10) == 65
        with pytest.raises(AlarmError), alarm():
            deep(10, 90)
        assert deep(200_000, 10) == 200_055
        with pytest.raises(AlarmError), alarm():
            deep(200_000, 90)
        assert deep(200_000, 10) == 200_055


def test_other_threads_run_meanwhile() -> None:
    ran = threading.Event()

    def stop() -> None:
        ran.set()
        signal.raise_signal(signal.SIGALRM)

    with options(lowering="c"):
        assert forever(0) == 0
    with alarm():
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        threading.Timer(0.1, stop).start()
        with options(lowering="c"), pytest.raises(AlarmError):
            forever(1)
    assert ran.is_set()
