"""Regions that are recorded and replayed, on a recorder whose graphs run the region again."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

import pytest
import torch

from pyrelay.lower_triton.launching import graphs
from pyrelay.lower_triton.launching.graphs import MOST_GRAPHS, RUNS_BEFORE, GraphedRegion


class Again:
    """A graph: what was called while it was recorded, on the same tensors and results."""

    def __init__(self) -> None:
        self.steps: Final[list[Callable[[], None]]] = []

    def replay(self) -> None:
        for step in self.steps:
            step()


class Recorder:
    """Counts graphs, and shows a region that it is being recorded."""

    def __init__(self) -> None:
        self.graphs: Final[list[Again]] = []
        self.open: Again | None = None
        self.is_outer = False
        self.turns = 0

    def graph(self) -> Again:
        self.graphs.append(Again())
        return self.graphs[-1]

    @contextmanager
    def recording(self, graph: Any) -> Generator[None]:
        self.open = graph
        yield
        self.open = None

    def is_recording(self) -> bool:
        return self.is_outer

    def take_turns(self) -> None:
        self.turns += 1


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
    assert step.runs == RUNS_BEFORE + 1  # the last run is on what the graph reads
    assert len(recorder.graphs) == 1
    assert recorder.turns == 4  # a run that touches the graph waits for the one before
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


def test_a_region_knows_the_strides_of_what_its_graph_reads_before_it_is_recorded() -> None:
    recorder = Recorder()
    known: set[tuple[Any, ...]] = set()

    def doubled(x: torch.Tensor) -> torch.Tensor:
        assert recorder.open is None or x.stride() in known, "nothing is new while it is recorded"
        known.add(x.stride())
        return step(torch.zeros(1), x, 2)[0]

    step = Step(recorder)
    region = GraphedRegion(doubled, (), recorder)
    for number in range(RUNS_BEFORE + 3):
        for x in (torch.full((3, 10), float(number))[:, :5], torch.full((3, 1), 1.0).expand(3, 5)):
            assert torch.equal(region(x), x * 2)
    assert len(recorder.graphs) == 2
    assert all(len(graph.steps) == 1 for graph in recorder.graphs)


def test_while_someone_else_records_a_region_is_part_of_that() -> None:
    recorder, step, region = setting()
    weight = torch.zeros(2)
    for _ in range(RUNS_BEFORE + 2):
        region(weight, torch.ones(3), 1)
    before = step.runs
    recorder.is_outer = True
    region(weight, torch.ones(3), 1)
    assert step.runs == before + 1
    assert torch.equal(weight, torch.full((2,), -3.0 * (RUNS_BEFORE + 3)))


def test_a_region_that_cannot_be_recorded_runs_as_it_is_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorder, step, region = setting()

    @contextmanager
    def refused(graph: Any) -> Generator[None]:
        recorder.open = graph
        yield
        recorder.open = None
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    monkeypatch.setattr(recorder, "recording", refused)
    weight = torch.zeros(2)
    for number in range(1, RUNS_BEFORE + 5):
        region(weight, torch.ones(3), 1)
        assert torch.equal(weight, torch.full((2,), -3.0 * number))
    assert step.runs == RUNS_BEFORE + 4
    assert len(recorder.graphs) == 1
    (said,) = caplog.messages
    assert said.endswith("cannot be recorded: operation not permitted when stream is capturing")


class Torch:
    """The calls of `torch.cuda`, without a GPU."""

    def __init__(self) -> None:
        self.told: Final[list[tuple[Any, ...]]] = []
        self.stream: Any = "the user's"

    @contextmanager
    def device(self, device: torch.device) -> Generator[None]:
        self.told.append(("device", str(device)))
        yield
        self.told.append(("device", "before"))

    def current_stream(self, device: Any = None) -> Any:
        return self.stream

    def set_stream(self, stream: Any) -> None:
        self.stream = stream

    @contextmanager
    def graph(self, graph: Any, stream: Any, capture_error_mode: str) -> Generator[None]:
        self.stream = stream
        yield
        raise RuntimeError("as torch does, which then leaves its stream the current one")

    def Stream(self, device: torch.device) -> Any:  # noqa: N802  torch's name
        return f"a side stream of {device}"


def test_recording_is_on_the_regions_own_device_and_leaves_the_users_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Torch()
    for name in ("device", "current_stream", "set_stream", "graph", "Stream"):
        monkeypatch.setattr(torch.cuda, name, getattr(told, name))
    recorder = graphs.CudaRecorder(torch.device("cuda", 1))
    while_recording: list[Any] = []
    with pytest.raises(RuntimeError, match="as torch does"), recorder.recording(None):
        while_recording += [told.stream, *told.told]
    assert while_recording == ["a side stream of cuda:1", ("device", "cuda:1")]
    assert told.stream == "the user's"


class Stream:
    """A stream that notes what it waits for."""

    def __init__(self, number: int) -> None:
        self.number: Final = number
        self.waits: Final[list[int]] = []

    def wait_stream(self, other: Stream) -> None:
        self.waits.append(other.number)


def test_a_run_on_another_stream_waits_for_the_run_before(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = [Stream(0), Stream(1)]
    here = streams[0]
    driver = SimpleNamespace(get_current_stream=lambda index: here.number)
    monkeypatch.setattr(graphs, "current_driver", lambda: driver)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: here)
    recorder = graphs.CudaRecorder(torch.device("cuda", 0))
    for number in (0, 0, 1, 1, 0):
        here = streams[number]
        recorder.take_turns()
    assert [s.waits for s in streams] == [[1], [0]]
