"""Regions as CUDA graphs: recorded once for each combination of shapes, then replayed.

A recorded graph reads and writes the addresses that it was recorded with. So the tensors that a
region only reads are copied into buffers of the graph's own, unless they have lain at one address
in all runs so far, as the parameters of a model do; a tensor that the region writes to is never
copied. Results are copied out, since the next replay overwrites them. Values are the same as those
of a region that is not recorded.

The call that records runs the region first, on what the graph will read: so kernels are compiled
and chosen, and libraries prepared, before anything is recorded, and nothing else may be then. What
cannot be recorded all the same runs as it is, which is logged once. Runs on several streams take
turns. While someone else records, the region is part of that recording.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from threading import Lock
from typing import Any, Final, Protocol, final

import torch

from ...dataclass import dataclass
from .launch import current_driver, on

_LOGGER: Final = logging.getLogger("pyrelay.kernels")

RUNS_BEFORE: Final = 2
"""A region is recorded after so many runs with the same shapes: by then kernels are compiled and
chosen, and a region that runs once costs nothing more."""

MOST_GRAPHS: Final = 16
"""A region keeps so many graphs at most: each holds memory of its own."""

MOST_SEEN: Final = 256
"""A region counts the runs of so many combinations of shapes at most."""


class Graph(Protocol):
    """The part of `torch.cuda.CUDAGraph` that is used."""

    def replay(self) -> None:
        """Do again what was recorded."""
        ...


class Recorder(Protocol):
    """Makes graphs."""

    def graph(self) -> Graph:
        """Return a graph with nothing in it."""
        ...

    def recording(self, graph: Graph) -> AbstractContextManager[None]:
        """Record what is started in the block instead of doing it. Raises RuntimeError where that
        cannot be."""
        ...

    def is_recording(self) -> bool:
        """Return whether what is started now is recorded already."""
        ...

    def take_turns(self) -> None:
        """Have what is started now wait for what was started before the last call of this."""
        ...


_ONE_AT_A_TIME: Final = Lock()
"""A process records one graph at a time: torch has one pool for what is allocated meanwhile."""


@final
class CudaRecorder:
    """Makes CUDA graphs on one device, whichever is the current one."""

    def __init__(self, device: torch.device) -> None:
        self._device: Final = device
        self._index: Final = device.index or 0
        self._last: torch.cuda.Stream | None = None
        self._number: int | None = None

    def graph(self) -> torch.cuda.CUDAGraph:
        """Return a graph with nothing in it."""
        return torch.cuda.CUDAGraph()

    @contextmanager
    def recording(self, graph: Any) -> Generator[None]:
        """Record what is started in the block instead of doing it."""
        with _ONE_AT_A_TIME, torch.cuda.device(self._device):
            here = torch.cuda.current_stream()
            stream = _side_stream(self._device)
            try:
                with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                    yield
            finally:
                torch.cuda.set_stream(here)  # torch leaves the other one if recording fails

    def is_recording(self) -> bool:
        """Return whether a graph is being recorded on the current stream."""
        with on(self._device):
            return torch.cuda.is_current_stream_capturing()

    def take_turns(self) -> None:
        """Have the current stream wait for the one that was current at the last call."""
        number = current_driver().get_current_stream(self._index)
        if number == self._number:
            return
        stream = torch.cuda.current_stream(self._device)
        if self._last is not None:
            stream.wait_stream(self._last)
        self._last, self._number = stream, number


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the stream of a device on which graphs are recorded. Libraries keep memory for
    each."""
    return torch.cuda.Stream(device)


@final
@dataclass(frozen=True, slots=True)
class _Buffer:
    """A tensor of the graph's own that an argument is copied into."""

    tensor: torch.Tensor


@final
@dataclass(frozen=True, slots=True)
class _Address:
    """Where a tensor of the caller has to lie."""

    value: int


@final
@dataclass(frozen=True, slots=True)
class _Recorded:
    """A graph, how it takes each tensor among the arguments, and what it gives."""

    graph: Graph
    taken: tuple[tuple[int, _Buffer | _Address], ...]
    results: Any

    def misses(self, args: Sequence[Any]) -> frozenset[int]:
        """Return the positions of the arguments that do not lie where they have to."""
        return frozenset(
            position
            for position, way in self.taken
            if isinstance(way, _Address) and way.value != args[position].data_ptr()
        )

    def replay(self, args: Sequence[Any]) -> Any:
        """Return the results for other contents of the arguments."""
        for position, way in self.taken:
            if isinstance(way, _Buffer):
                way.tensor.copy_(args[position])
        self.graph.replay()
        return _copied(self.results)


@final
class _Runs:
    """The history of one combination of shapes before its graph is recorded."""

    def __init__(self, args: Sequence[Any]) -> None:
        self.count: int = 0
        self.settled: dict[int, int] = {
            i: a.data_ptr() for i, a in enumerate(args) if isinstance(a, torch.Tensor)
        }
        """The tensors that have lain at one address so far."""

    def add(self, args: Sequence[Any]) -> None:
        """Count a run."""
        self.count += 1
        self.drop(i for i, address in self.settled.items() if args[i].data_ptr() != address)

    def drop(self, positions: Iterable[int]) -> None:
        """Note that arguments do not always lie at one address."""
        for position in tuple(positions):
            del self.settled[position]


@final
class GraphedRegion:
    """A region function that is replayed where it can be.

    `written` are the positions of the parameters that it writes to. Its arguments are tensors and
    numbers, its result a tensor or a tuple of them.
    """

    def __init__(
        self, function: Callable[..., Any], written: Sequence[int], recorder: Recorder
    ) -> None:
        self._function: Final = function
        self._written: Final = tuple(written)
        self._recorder: Final = recorder
        self._runs: Final[dict[tuple[Any, ...], _Runs]] = {}
        self._graphs: Final[dict[tuple[Any, ...], _Recorded]] = {}
        self._lock: Final = Lock()
        self._is_refused = False

    def __call__(self, *args: Any) -> Any:
        """Return the result of the region, in storage of its own."""
        if self._is_refused or self._recorder.is_recording():
            return self._function(*args)
        with self._lock:  # a graph's buffers belong to one run at a time
            return self._run(args)

    def _run(self, args: Sequence[Any]) -> Any:
        key = (*[_key(a) for a in args], *[args[i].data_ptr() for i in self._written])
        recorded = self._graphs.get(key)
        if recorded is None:
            return self._run_before(key, args)
        self._recorder.take_turns()
        moved = recorded.misses(args)
        if not moved:
            return recorded.replay(args)
        self._runs[key].drop(moved)
        return self._record(key, args)

    def _run_before(self, key: tuple[Any, ...], args: Sequence[Any]) -> Any:
        if key not in self._runs and len(self._runs) >= MOST_SEEN:
            self._runs.pop(next(k for k in self._runs if k not in self._graphs))
        runs = self._runs.setdefault(key, _Runs(args))
        runs.add(args)
        if runs.count <= RUNS_BEFORE or len(self._graphs) >= MOST_GRAPHS:
            return self._function(*args)
        self._recorder.take_turns()
        return self._record(key, args)

    def _record(self, key: tuple[Any, ...], args: Sequence[Any]) -> Any:
        """Return the result of the region, and record it for other contents of the arguments."""
        settled = self._runs[key].settled
        given = list(args)
        taken: list[tuple[int, _Buffer | _Address]] = []
        for position, arg in enumerate(args):
            if not isinstance(arg, torch.Tensor):
                continue
            if position in settled or position in self._written:
                taken.append((position, _Address(arg.data_ptr())))
                continue
            given[position] = arg.clone()  # perhaps of other strides, by which the region runs
            taken.append((position, _Buffer(given[position])))
        found = _copied(self._function(*given))
        graph = self._recorder.graph()
        try:
            with self._recorder.recording(graph):
                results = self._function(*given)
        except RuntimeError as error:
            self._refuse(error)
        else:
            self._graphs[key] = _Recorded(graph, tuple(taken), results)
        return found

    def _refuse(self, error: RuntimeError) -> None:
        """Record nothing any more."""
        self._is_refused = True
        self._graphs.clear()
        why = str(error).partition("\n")[0] or type(error).__name__
        _LOGGER.warning("a region runs without a CUDA graph, which cannot be recorded: %s", why)


def _key(value: Any) -> Any:
    """Return the key of an argument of a graph: everything but its contents and address."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.dtype
    return type(value), value


def _copied(results: Any) -> Any:
    if isinstance(results, tuple):
        return tuple([_copied(r) for r in results])
    return results.clone() if isinstance(results, torch.Tensor) else results
