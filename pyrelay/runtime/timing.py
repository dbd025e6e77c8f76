"""Which of several functions is the fastest on given arguments.

All run in turns, so that a machine that slows down treats them alike, and the best time of each
counts. A time during which another program took a processor away says little; if one of the
functions has no better, the answer is a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, final

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

_MARGIN: Final = 0.9
"""What a function must take of the first one's time to be chosen in its place."""

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


@final
@dataclass(slots=True)
class _Runner:
    """A function with its best time so far, and its best time with no one in the way."""

    function: Callable[..., Any]
    best: float = _NEVER
    undisturbed: float = _NEVER

    def run(self, operands: Sequence[Any], calls: int) -> None:
        """Time some calls."""
        switches = _switches()
        start = perf_counter()
        for _ in range(calls):
            self.function(*operands)
        time = (perf_counter() - start) / calls
        self.best = min(self.best, time)
        if _switches() == switches:
            self.undisturbed = min(self.undisturbed, time)


def fastest(functions: Mapping[str, Callable[..., Any]], operands: Sequence[Any]) -> Fastest:
    """Give the fastest of functions that have no effect. Of those that take almost as long as the
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
                runner.run(operands, calls)
    winner = min(runners, key=lambda name: runners[name].best)
    if runners[winner].best > _MARGIN * runners[first].best:
        winner = first
    is_sure = all(r.undisturbed < _NEVER for r in runners.values())
    return Fastest(winner, is_sure, {name: r.best for name, r in runners.items()})


def _switches() -> int:
    """Give how often another program has taken a processor away from this one."""
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
