"""Which of several functions is the fastest on given arguments.

All run in turns, so that a machine that slows down treats them alike, and the best time of each
counts. A time during which another program took a processor away says little; if one of the
functions has no better, the answer is a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Final, Protocol, final

import torch

from ..dataclass import dataclass

try:
    import resource
except ImportError:  # Windows has no such thing
    resource = None

_ROUNDS: Final = 7
_BUDGET: Final = 4e-3
"""Seconds after which no further round begins, but for the second."""

_MOST: Final = 0.1
"""Seconds after which no second round begins."""

_BLOCK: Final = 4e-5
"""Seconds that the calls between two looks at the clock should take together."""

MARGIN: Final = 0.9
"""The fraction of the first function's time below which another is chosen in its place."""

_HOPELESS: Final = 2.0
"""How many times slower than the best a function may be to take part in the next round."""


_NEVER: Final = float("inf")


@final
@dataclass(frozen=True, slots=True)
class Fastest:
    """The name of the fastest function, and whether another measurement would say the same."""

    name: str
    is_sure: bool
    times: Mapping[str, float]
    """The best time of each, in seconds."""

    @property
    def shown(self) -> str:
        """The times as text."""
        return ", ".join(f"{name} {1e6 * time:.0f} us" for name, time in self.times.items())


class Stopwatch(Protocol):
    """Takes times."""

    def time(self, function: Callable[..., Any], operands: Sequence[Any], calls: int) -> Taken:
        """Return how long a call of a function takes, of about so many."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Taken:
    """The seconds that a call took, and whether another program was in the way."""

    seconds: float
    is_disturbed: bool


@final
class ProcessorWatch:
    """Takes times of what this thread does."""

    def time(self, function: Callable[..., Any], operands: Sequence[Any], calls: int) -> Taken:
        """Return how long a call of a function takes, of so many."""
        switches = _switches()
        start = perf_counter()
        for _ in range(calls):
            function(*operands)
        seconds = perf_counter() - start
        return Taken(seconds / calls, _switches() != switches)


@final
class DeviceWatch:
    """Takes times of what a GPU does, by its own clock.

    The device is given something to do first, which takes longer than it takes this thread to
    start the calls: then no time is spent waiting for them. What that is writes to more memory than
    caches hold, so that no function finds its operands there because another has just run.
    """

    def __init__(self, device: torch.device) -> None:
        self._device: Final = device
        self._before: Final = torch.empty(_BEFORE, dtype=torch.uint8, device=device)

    def time(self, function: Callable[..., Any], operands: Sequence[Any], calls: int) -> Taken:
        """Return how long a call of a function takes on the current stream, of at most so many."""
        calls = min(calls, _MOST_QUEUED)
        with torch.cuda.device(self._device):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            for _ in range(_TIMES):
                self._before.zero_()
            begin.record()
            for _ in range(calls):
                function(*operands)
            end.record()
            end.synchronize()
        return Taken(begin.elapsed_time(end) * 1e-3 / calls, is_disturbed=False)


_BEFORE: Final = 1 << 28
_TIMES: Final = 4
"""256 MB are written in some 50 us by the fastest devices there are; so often, in 200."""

_MOST_QUEUED: Final = 8
"""So many calls are certainly started in that time."""


@final
@dataclass(slots=True)
class _Runner:
    """A function with its best time so far, and its best time with no one in the way."""

    function: Callable[..., Any]
    best: float = _NEVER
    undisturbed: float = _NEVER

    def run(self, watch: Stopwatch, operands: Sequence[Any], calls: int) -> None:
        """Time some calls."""
        taken = watch.time(self.function, operands, calls)
        self.best = min(self.best, taken.seconds)
        if not taken.is_disturbed:
            self.undisturbed = min(self.undisturbed, taken.seconds)


_PROCESSOR: Final = ProcessorWatch()


def fastest(
    functions: Mapping[str, Callable[..., Any]],
    operands: Sequence[Any],
    watch: Stopwatch = _PROCESSOR,
) -> Fastest:
    """Return the fastest of functions that have no effect. Of those that take almost as long as the
    first one, it is the first."""
    runners = {name: _Runner(function) for name, function in functions.items()}
    first, *_ = runners
    began = perf_counter()
    for runner in runners.values():  # libraries prepare themselves when they first see a shape
        runner.function(*operands)
    for number in range(_ROUNDS):
        spent = perf_counter() - began
        if number and spent > (_BUDGET if number > 1 else _MOST):
            break
        least = min(r.best for r in runners.values())
        calls = max(1, round(_BLOCK / least))
        for runner in runners.values():
            if runner.best <= _HOPELESS * least or runner.undisturbed == _NEVER:
                runner.run(watch, operands, calls)
    winner = min(runners, key=lambda name: runners[name].best)
    if runners[winner].best > MARGIN * runners[first].best:
        winner = first
    is_sure = all(r.undisturbed < _NEVER for r in runners.values())
    return Fastest(winner, is_sure, {name: r.best for name, r in runners.items()})


def _switches() -> int:
    """Return how often another program has taken a processor away from this one."""
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
