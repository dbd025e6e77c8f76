"""Modes and keys that are included or excluded hold where they should, and nowhere else."""

from __future__ import annotations

import asyncio
import threading

import pytest
import torch

import pyrelay
from pyrelay import RunError, dispatch, relay
from tests.features.dispatch.dispatching import Counting, Seen, X, area, everywhere, triple, wave


def test_a_thread_starts_without_modes_and_a_task_with_those_of_its_parent() -> None:
    seen = Seen()

    async def task() -> None:
        wave(X)

    async def tasks() -> None:
        with dispatch.include(Counting):
            inside = asyncio.create_task(task())
        await asyncio.create_task(task())
        await inside

    with dispatch.fallback(Counting, seen):
        with dispatch.include(Counting):
            thread = threading.Thread(target=wave, args=(X,))
            thread.start()
            thread.join()
            assert seen.names == []
        asyncio.run(tasks())
    assert len(seen.names) == 3


def test_threads_under_different_modes_run_one_program_at_once() -> None:
    add_one, add_two = dispatch.mode("AddOne"), dispatch.mode("AddTwo")
    results: dict[str, list[torch.Tensor]] = {"one": [], "two": [], "none": []}

    def work(name: str, *modes: dispatch.Key) -> None:
        with dispatch.include(*modes):
            for _ in range(50):
                results[name].append(wave(X))

    with (
        dispatch.register(relay.tanh, add_one, lambda x: x + 1),
        dispatch.register(relay.tanh, add_two, lambda x: x + 2),
    ):
        threads = [
            threading.Thread(target=work, args=("one", add_one)),
            threading.Thread(target=work, args=("two", add_two)),
            threading.Thread(target=work, args=("none",)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for name, expected in [("one", X + 1), ("two", X + 2), ("none", torch.tanh(X))]:
        assert len(results[name]) == 50
        for value in results[name]:
            torch.testing.assert_close(value, expected * 2 + 1)


def test_the_innermost_mode_is_asked_first_and_exclusion_wins() -> None:
    outer, inner = dispatch.mode("Outer"), dispatch.mode("Inner")
    with (
        dispatch.register(relay.tanh, outer, lambda x: x + 1),
        dispatch.register(relay.tanh, inner, lambda x: x + 2),
    ):
        with dispatch.include(outer), dispatch.include(inner):
            torch.testing.assert_close(relay.tanh(X), X + 2)
        with dispatch.include(inner), dispatch.include(outer):
            torch.testing.assert_close(relay.tanh(X), X + 1)
        with dispatch.include(inner, outer):
            torch.testing.assert_close(relay.tanh(X), X + 1)
            with dispatch.exclude(outer), dispatch.include(outer):
                torch.testing.assert_close(relay.tanh(X), X + 2)
        torch.testing.assert_close(relay.tanh(X), torch.tanh(X))


def test_a_key_that_is_included_counts_as_if_the_call_had_it() -> None:
    with dispatch.register(relay.tanh, ("cuda", "half"), triple):
        torch.testing.assert_close(wave(X), torch.tanh(X) * 2 + 1)
        with dispatch.include("cuda", "half"):
            torch.testing.assert_close(everywhere(wave, X), X * 6 + 1)


def test_no_compile_refuses_what_another_state_would_compile() -> None:
    with dispatch.fallback(Counting, Seen()):
        with dispatch.include(Counting):
            area(X)
        area(X)
        fresh = dispatch.mode("Fresh")
        with pyrelay.no_compile():
            area(X)
            with dispatch.include(Counting):
                area(X)
            with (
                dispatch.register(relay.tanh, fresh, triple),
                dispatch.include(fresh),
                pytest.raises(RunError) as caught,
            ):
                area(X)
    assert caught.value.codes == ("RL555",)
