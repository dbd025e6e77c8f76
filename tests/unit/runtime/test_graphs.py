"""Regions that are recorded and replayed, on a recorder whose graphs run the region again."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

import torch

from pyrelay.runtime.graphs import MOST_GRAPHS, RUNS_BEFORE, GraphedRegion


class Again:
    """A graph: what was called while it was recorded, on the same tensors and results."""

    def __init__(self) -> None:
        self.steps: Final[list[Callable[[], None]]] = []

    def replay(self) -> None:
        for step in self.steps:
            step()


class Recorder:
    """Counts graphs, and tells a region that it is being recorded."""

    def __init__(self) -> None:
        self.graphs: Final[list[Again]] = []
        self.open: Again | None = None

    def graph(self) -> Again:
        self.graphs.append(Again())
        return self.graphs[-1]

    @contextmanager
    def recording(self, graph: Any) -> Generator[None]:
        self.open = graph
        yield
        self.open = None


class Step:
    """A training step: `weight -= x.sum()`, gives `x * scale` and the old weight."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder: Final = recorder
        self.runs = 0

    def __call__(
        self, weight: torch.Tensor, x: torch.Tensor, scale: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scaled, old = torch.empty_like(x), torch.empty_like(weight)

        def run() -> None:
            scaled.copy_(x * scale)
            old.copy_(weight)
            weight.sub_(x.sum())

        if self.recorder.open is None:
            self.runs += 1
            run()
        else:
            self.recorder.open.steps.append(run)
        return scaled, old


def setting() -> tuple[Recorder, Step, GraphedRegion]:
    recorder = Recorder()
    step = Step(recorder)
    return recorder, step, GraphedRegion(step, (0,), recorder)


def test_a_region_is_recorded_once_its_shapes_have_been_seen_before() -> None:
    recorder, step, region = setting()
    weight, expected = torch.zeros(2), torch.zeros(2)
    given: list[tuple[torch.Tensor, torch.Tensor]] = []
    for i in range(RUNS_BEFORE + 4):
        x = torch.full((3,), float(i))
        given.append(region(weight, x, 2))
        torch.testing.assert_close(given[-1], (x * 2, expected))
        expected = expected - x.sum()
        torch.testing.assert_close(weight, expected)
    assert step.runs == RUNS_BEFORE
    assert len(recorder.graphs) == 1
    # What earlier calls gave is theirs: no replay has written to it.
    assert [float(s[0]) for s, _ in given] == [2.0 * i for i in range(len(given))]


def test_other_shapes_and_numbers_are_graphs_of_their_own() -> None:
    recorder, _, region = setting()
    weight = torch.zeros(2)
    for size, scale in ((3, 2), (4, 2), (3, 5)):
        for _ in range(RUNS_BEFORE + 2):
            scaled, _ = region(weight, torch.ones(size), scale)
            assert torch.equal(scaled, torch.full((size,), float(scale)))
    assert len(recorder.graphs) == 3


def test_two_models_have_their_own_graphs() -> None:
    recorder, _, region = setting()
    first, second = torch.zeros(2), torch.zeros(2)
    for _ in range(RUNS_BEFORE + 2):
        region(first, torch.ones(3), 1)
        region(second, torch.ones(3) * 2, 1)
    runs = RUNS_BEFORE + 2
    assert torch.equal(first, torch.full((2,), -3.0 * runs))
    assert torch.equal(second, torch.full((2,), -6.0 * runs))
    assert len(recorder.graphs) == 2


def test_a_tensor_that_lay_still_and_moves_is_copied_from_then_on() -> None:
    recorder, _, region = setting()
    weight, still = torch.zeros(2), torch.ones(3)
    for _ in range(RUNS_BEFORE + 2):
        region(weight, still, 1)
    still.mul_(2)
    scaled, _ = region(weight, still, 1)
    assert torch.equal(scaled, torch.full((3,), 2.0))
    assert len(recorder.graphs) == 1
    for value in (5.0, 7.0):
        moved = torch.full((3,), value)
        scaled, _ = region(weight, moved, 1)
        assert torch.equal(scaled, moved)
    assert len(recorder.graphs) == 2


def test_a_region_keeps_a_bounded_number_of_graphs() -> None:
    recorder, _, region = setting()
    weight = torch.zeros(2)
    for size in range(1, MOST_GRAPHS + 5):
        for _ in range(RUNS_BEFORE + 2):
            scaled, _ = region(weight, torch.ones(size), 3)
            assert torch.equal(scaled, torch.full((size,), 3.0))
    assert len(recorder.graphs) == MOST_GRAPHS
