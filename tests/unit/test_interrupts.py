"""Ctrl-C waits for the end of what must be whole."""

from __future__ import annotations

import signal
import threading

import pytest

from pyrelay.interrupts import uninterrupted
from tests.interrupts import each_interrupt


def append_two(found: list[int]) -> None:
    found.append(1)
    found.append(2)


def test_an_interrupt_comes_before_or_after() -> None:
    found = each_interrupt(
        list[int], lambda found: uninterrupted(append_two, found), instructions=True
    )
    assert {tuple(f) for f in found} == {(), (1, 2)}
    found = each_interrupt(list[int], append_two)
    assert (1,) in {tuple(f) for f in found}


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_the_handler_of_before_runs_and_stays() -> None:
    seen: list[str] = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append("pressed"))
    try:

        def pressed() -> int:
            press()
            seen.append("ended")
            return 3

        assert uninterrupted(pressed) == 3
        assert seen == ["ended", "pressed"]
        press()
        assert seen == ["ended", "pressed", "pressed"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_comes_after_an_error_too() -> None:
    def fails() -> None:
        press()
        raise ValueError

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            uninterrupted(fails)
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_run_as_they_do() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: uninterrupted(append_two, found))
    thread.start()
    thread.join()
    assert found == [1, 2]
