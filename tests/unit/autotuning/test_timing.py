"""The fastest of several functions is found, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from pyrelay.autotuning import timing
from pyrelay.autotuning.timing import fastest


class Machine:
    """A clock that only work moves, and a processor that others may take away."""

    def __init__(self) -> None:
        self.now = 0.0
        self.switches = 0
        self.calls: Final[dict[str, int]] = {}

    def work(self, name: str, seconds: float, *, disturbed: bool = False) -> Callable[..., None]:
        """Return a function that takes a time, during which others may get the processor."""

        def work(*_: object) -> None:
            self.now += seconds
            self.switches += disturbed
            self.calls[name] = self.calls.get(name, 0) + 1

        return work


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return the machine that times are taken on."""
    made = Machine()
    monkeypatch.setattr(timing, "perf_counter", lambda: made.now)
    monkeypatch.setattr(timing, "_switches", lambda: made.switches)
    return made


def test_the_function_that_takes_least_is_found(machine: Machine) -> None:
    times = {"first": 3e-4, "second": 1e-4, "third": 2e-4}
    found = fastest({name: machine.work(name, t) for name, t in times.items()}, ())
    assert found.name == "second"
    assert found.is_sure
    assert found.times == pytest.approx(times)


def test_the_first_wins_where_others_are_hardly_faster(machine: Machine) -> None:
    first = machine.work("first", 3e-4)
    assert fastest({"first": first, "second": machine.work("", 2.9e-4)}, ()).name == "first"
    assert fastest({"first": first, "second": machine.work("", 2e-4)}, ()).name == "second"


def test_the_best_time_counts(machine: Machine) -> None:
    def uneven(*_: object) -> None:
        machine.now += 1e-4 if machine.calls["steady"] % 3 else 1e-3

    functions = {"steady": machine.work("steady", 3e-4), "uneven": uneven}
    assert fastest(functions, ()).name == "uneven"


def test_functions_are_called_with_the_operands(machine: Machine) -> None:
    seen: list[tuple[object, ...]] = []

    def note(*operands: object) -> None:
        machine.now += 1e-3
        seen.append(operands)

    fastest({"only": note}, (1, "x"))
    assert set(seen) == {(1, "x")}


def test_a_slow_function_runs_a_few_times_only(machine: Machine) -> None:
    names = ("first", "second")
    fastest({name: machine.work(name, 0.03) for name in names}, ())
    assert machine.calls == {"first": 2, "second": 2}
    fastest({name: machine.work(name, 10) for name in names}, ())
    assert machine.calls == {"first": 4, "second": 4}


def test_a_hopeless_function_does_not_run_again(machine: Machine) -> None:
    fastest({"first": machine.work("first", 5e-5), "slow": machine.work("slow", 4e-4)}, ())
    assert machine.calls["slow"] == 2
    assert machine.calls["first"] > 5


def test_times_taken_while_others_had_the_processor_are_a_guess(machine: Machine) -> None:
    steady = machine.work("steady", 1e-5)
    disturbed = machine.work("disturbed", 2e-5, disturbed=True)
    found = fastest({"steady": steady, "disturbed": disturbed}, ())
    assert found.name == "steady"
    assert not found.is_sure
    assert fastest({"steady": steady, "other": machine.work("other", 2e-5)}, ()).is_sure


def test_on_a_real_clock_the_function_that_does_nothing_wins() -> None:
    found = fastest({"first": lambda: sum(range(100_000)), "second": lambda: None}, ())
    assert found.name == "second"
    assert found.times["first"] > found.times["second"] > 0
