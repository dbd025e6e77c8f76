"""The fastest way to run a kernel is found once, on a device whose clock only work moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import torch

from pyrelay.autotuning import measurements
from pyrelay.autotuning.timing import Taken
from pyrelay.config import options
from pyrelay.ir.dims import Dim
from pyrelay.ir.types import float16, float32
from pyrelay.kernels.calling import Read, Size
from pyrelay.lower_triton.kernel import Config, Kernel
from pyrelay.lower_triton.launching import choosing
from pyrelay.lower_triton.launching.choosing import Measured, chooser
from pyrelay.lower_triton.launching.prepare import Question, expected


class NoRoomError(Exception):
    """What Triton raises where a device has no room for a kernel."""


class Machine:
    """A device, and what takes times on it."""

    def __init__(self, name: str = "a device") -> None:
        self.name: Final[Sequence[Any]] = [name]
        self.now = 0.0
        self.records = False
        self.calls: Final[list[int]] = []

    def is_recording(self) -> bool:
        return self.records

    def watch(self) -> Machine:
        return self

    def time(self, function: Callable[..., Any], operands: Sequence[Any], calls: int) -> Taken:
        before = self.now
        for _ in range(calls):
            function(*operands)
        return Taken((self.now - before) / calls, is_disturbed=False)

    def ways(self, *seconds: float | None) -> list[Callable[[], object]]:
        """Return ways that take so long; None for one that the device has no room for."""

        def way(number: int, time: float | None) -> Callable[[], None]:
            def run() -> None:
                self.calls.append(number)
                if time is None:
                    raise NoRoomError("out of resource: shared memory")
                self.now += time

            return run

        return [way(*pair) for pair in enumerate(seconds)]


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder and a process that know nothing."""
    measurements._winners.clear()
    monkeypatch.setattr(choosing, "triton_error", lambda: NoRoomError)
    with options(cache_dir=tmp_path, measure=True):
        yield tmp_path
    measurements._winners.clear()


def asked(*sizes: int, text: str = "def product(): ...", dtype: Any = float32) -> Question:
    n = Dim.of("N")
    configs = tuple(Config((("BLOCK", 1 << i),), 4, 2) for i in range(3))
    arguments = (Read(0, dtype), *(Size(n) for _ in sizes))
    kernel = Kernel("product", text, ("x", "n"), arguments, (), configs)
    return Question((kernel,), sizes)


def another_process() -> None:
    measurements._winners.clear()


def test_the_fastest_way_is_found_once_and_kept() -> None:
    machine = Machine()
    choose = Measured(machine)
    assert choose(asked(100), machine.ways(3e-4, 1e-4, 2e-4)) == 1
    machine.calls.clear()
    assert choose(asked(100), machine.ways(1e-4, 2e-4, 2e-4)) == 1
    another_process()
    assert choose(asked(100), machine.ways(1e-4, 2e-4, 2e-4)) == 1
    assert not machine.calls


@pytest.mark.parametrize(
    ("other", "is_measured"),
    [
        (asked(101), False),  # a size like the first one
        (asked(200), True),
        (asked(100, text="def another(): ..."), True),
        (asked(100, dtype=float16), True),
    ],
)
def test_sizes_like_these_are_measured_once(other: Question, is_measured: bool) -> None:
    machine = Machine()
    choose = Measured(machine)
    choose(asked(100), machine.ways(2e-4, 1e-4))
    machine.calls.clear()
    choose(other, machine.ways(2e-4, 1e-4))
    assert bool(machine.calls) == is_measured


def test_another_device_is_measured_anew() -> None:
    first, second = Machine("one"), Machine("another")
    assert Measured(first)(asked(100), first.ways(2e-4, 1e-4)) == 1
    assert Measured(second)(asked(100), second.ways(1e-4, 2e-4)) == 0
    assert second.calls


@pytest.mark.parametrize("winner", ["", "7", "-1", "one"])
def test_what_is_kept_is_not_believed_unless_it_names_a_way(
    winner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    choose = Measured(machine)
    choose(asked(100), machine.ways(2e-4, 1e-4))
    another_process()
    monkeypatch.setattr(measurements, "recall", lambda _: winner)
    assert choose(asked(100), machine.ways(1e-4, 2e-4)) == 0


def test_the_first_way_wins_where_others_are_hardly_faster() -> None:
    machine = Machine()
    assert Measured(machine)(asked(100), machine.ways(1e-4, 0.95e-4)) == 0


def test_a_way_that_the_device_has_no_room_for_takes_no_part() -> None:
    machine = Machine()
    assert Measured(machine)(asked(100), machine.ways(None, 2e-4, 1e-4)) == 2
    assert machine.calls.count(0) == 1


def test_a_kernel_that_no_device_has_room_for_is_an_error() -> None:
    machine = Machine()
    with pytest.raises(NoRoomError):
        Measured(machine)(asked(100), machine.ways(None, None))


def test_nothing_is_timed_where_measuring_is_off() -> None:
    machine = Machine()
    with options(measure=False):
        assert Measured(machine)(asked(100), machine.ways(2e-4, 1e-4)) == 0
        assert Measured(machine)(asked(100), machine.ways(None, 1e-4)) == 1
    assert machine.calls == [0, 0, 1]


def test_nothing_runs_while_a_graph_is_recorded() -> None:
    machine = Machine()
    machine.records = True
    assert Measured(machine)(asked(100), machine.ways(2e-4, 1e-4)) == 0
    assert not machine.calls
    machine.records = False
    assert Measured(machine)(asked(100), machine.ways(2e-4, 1e-4)) == 1


def test_the_interpreter_takes_what_the_cost_model_expects() -> None:
    assert chooser(torch.device("cpu")) is expected
    assert isinstance(chooser(torch.device("cuda", 0)), Measured)
