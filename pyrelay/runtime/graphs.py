"""Regions as CUDA graphs: recorded once for each combination of shapes, then replayed.

A recorded graph reads and writes the addresses that it was recorded with. So the tensors that a
region only reads are copied into buffers of the graph's own, unless they have lain at one address
in all runs so far, as the parameters of a model do; a tensor that the region writes to is never
copied. Results are copied out, since the next replay overwrites them. Values are the same as those
of a region that is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

import torch

RUNS_BEFORE: Final = 2
"""A region is recorded after so many runs with the same shapes: by then kernels are compiled and
chosen, and a region that runs once costs nothing more."""

MOST_GRAPHS: Final = 16
"""A region keeps so many graphs at most: each holds memory of its own."""

MOST_SEEN: Final = 256
"""A region counts the runs of so many combinations of shapes at most."""


class Graph(Protocol):
    """What `torch.cuda.CUDAGraph` is used for."""

    def replay(self) -> None:
        """Do again what was recorded."""
        ...


class Recorder(Protocol):
    """Makes graphs."""

    def graph(self) -> Graph:
        """Give a graph with nothing in it."""
        ...

    def recording(self, graph: Graph) -> AbstractContextManager[None]:
        """Record what is started in the block instead of doing it."""
        ...


@final
class CudaRecorder:
    """Makes CUDA graphs."""

    def graph(self) -> torch.cuda.CUDAGraph:
        """Give a graph with nothing in it."""
        return torch.cuda.CUDAGraph()

    def recording(self, graph: Any) -> AbstractContextManager[None]:
        """Record what is started in the block instead of doing it."""
        return torch.cuda.graph(graph, capture_error_mode="thread_local")


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
        """Give the positions of the arguments that do not lie where they have to."""
        return frozenset(
            position
            for position, way in self.taken
            if isinstance(way, _Address) and way.value != args[position].data_ptr()
        )

    def replay(self, args: Sequence[Any]) -> Any:
        """Give the results for other contents of the arguments."""
        for position, way in self.taken:
            if isinstance(way, _Buffer):
                way.tensor.copy_(args[position])
        self.graph.replay()
        return _copied(self.results)


@final
class _Runs:
    """What has been seen of one combination of shapes before its graph is recorded."""

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

    def __call__(self, *args: Any) -> Any:
        """Give the result of the region, in storage of its own."""
        key = (*[_key(a) for a in args], *[args[i].data_ptr() for i in self._written])
        recorded = self._graphs.get(key)
        if recorded is None:
            return self._run(key, args)
        moved = recorded.misses(args)
        if not moved:
            return recorded.replay(args)
        self._runs[key].drop(moved)
        recorded = self._graphs[key] = self._record(key, args)
        return recorded.replay(args)

    def _run(self, key: tuple[Any, ...], args: Sequence[Any]) -> Any:
        if key not in self._runs and len(self._runs) >= MOST_SEEN:
            self._runs.pop(next(k for k in self._runs if k not in self._graphs))
        runs = self._runs.setdefault(key, _Runs(args))
        runs.add(args)
        if runs.count <= RUNS_BEFORE or len(self._graphs) >= MOST_GRAPHS:
            return self._function(*args)
        recorded = self._graphs[key] = self._record(key, args)
        return recorded.replay(args)

    def _record(self, key: tuple[Any, ...], args: Sequence[Any]) -> _Recorded:
        settled = self._runs[key].settled
        given = list(args)
        taken: list[tuple[int, _Buffer | _Address]] = []
        for position, arg in enumerate(args):
            if not isinstance(arg, torch.Tensor):
                continue
            if position in settled or position in self._written:
                taken.append((position, _Address(arg.data_ptr())))
                continue
            given[position] = arg.clone()  # keeps the strides, on which kernels depend
            taken.append((position, _Buffer(given[position])))
        graph = self._recorder.graph()
        with self._recorder.recording(graph):
            results = self._function(*given)
        return _Recorded(graph, tuple(taken), results)


def _key(value: Any) -> Any:
    """Give what a graph depends on of an argument, its contents and address aside."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.dtype
    return type(value), value


def _copied(results: Any) -> Any:
    if isinstance(results, tuple):
        return tuple([_copied(r) for r in results])
    return results.clone() if isinstance(results, torch.Tensor) else results
