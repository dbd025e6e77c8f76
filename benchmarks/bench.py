"""Timing several ways of doing the same work against each other.

Blocks of calls alternate between the candidates, in an order that reverses every round, so that a
machine that warms up or slows down treats all of them alike. Medians over the rounds are compared;
the 10th and 90th percentiles show the spread.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Candidate:
    """One way of doing the work. `reset` is called before every block, outside of the time taken:
    training from the same weights again keeps gradients from vanishing into denormal numbers.
    `finish` is called at the end of every block, inside of the time taken, to wait for a device."""

    work: Callable[[], Any]
    reset: Callable[[], object] = lambda: None
    finish: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds of blocks, and seconds a block."""

    rounds: int = 25
    block: float = 0.02
    warmup: float = 0.3


@dataclass(frozen=True)
class Timing:
    """What one candidate took, in seconds a call; `first` includes compiling, and `second` is the
    first call of a second process, where it was taken."""

    median: float
    p10: float
    p90: float
    first: float
    calls: int
    second: float | None = None


def compare(
    candidates: Mapping[str, Candidate], effort: Effort, first: Mapping[str, float]
) -> dict[str, Timing]:
    """Time candidates against each other; `first` is what their first calls took."""
    calls = {name: _block_size(candidate, effort) for name, candidate in candidates.items()}
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    gc.collect()
    gc.disable()
    try:
        for number in range(effort.rounds):
            names = list(candidates) if number % 2 == 0 else list(candidates)[::-1]
            for name in names:
                _seconds(candidates[name], 1)  # the block before may have left cold caches
                samples[name].append(_seconds(candidates[name], calls[name]) / calls[name])
            gc.collect()
    finally:
        gc.enable()
    return {
        name: Timing(
            statistics.median(found), *_tails(found), first[name], calls[name] * effort.rounds
        )
        for name, found in samples.items()
    }


def median(run: Callable[[], Any], rounds: int = 25) -> float:
    """Return the median of the times of a call, in milliseconds, once it has been prepared."""
    for _ in range(10):
        run()
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def _block_size(candidate: Candidate, effort: Effort) -> int:
    """Return the number of calls that fill a block, after warming up."""
    end = time.perf_counter() + effort.warmup
    spent = [_seconds(candidate, 5) / 5 for _ in range(2)]
    while time.perf_counter() < end:
        spent.append(_seconds(candidate, 5) / 5)
    return max(1, round(effort.block / statistics.median(spent[1:])))


def _seconds(candidate: Candidate, calls: int) -> float:
    candidate.reset()
    work = candidate.work
    start = time.perf_counter()
    for _ in range(calls):
        work()
    candidate.finish()
    return time.perf_counter() - start


def _tails(samples: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(samples)
    last = len(ordered) - 1
    return ordered[round(0.1 * last)], ordered[round(0.9 * last)]


class Report:
    """The cases measured so far, as a table for people and as JSON for comparisons."""

    def __init__(self, title: str, baseline: str, packages: Sequence[str], **facts: Any) -> None:
        self._title = title
        self._baseline = baseline
        self._facts = {**facts, **machine(), "versions": versions(packages)}
        self._cases: dict[str, dict[str, Timing]] = {}
        self._limits: dict[str, float] = {}

    def add(self, case: str, timings: dict[str, Timing], limit: float | None = None) -> None:
        """Take the timings of one case, and the ratio of kernels that are written by hand for it,
        where it is known."""
        self._cases[case] = timings
        if limit is not None:
            self._limits[case] = limit

    def add_second(self, seconds: Mapping[str, Mapping[str, float]]) -> None:
        """Take what the first calls in a second process took, by case and candidate."""
        for case, found in seconds.items():
            timings = self._cases[case]
            for name, taken in found.items():
                timings[name] = dataclasses.replace(timings[name], second=taken)

    def print(self) -> None:
        """Print all cases in one table; a ratio above 1 is faster than the baseline."""
        table = Table(title=self._title, caption=f"ratio: times faster than {self._baseline}")
        for heading in ("case", "candidate"):
            table.add_column(heading)
        for heading in ("median", "p10", "p90", "ratio", "first call", "second process"):
            table.add_column(heading, justify="right")
        for case, timings in self._cases.items():
            for index, (name, t) in enumerate(timings.items()):
                times = (f"{s * 1e6:,.1f} us" for s in (t.median, t.p10, t.p90))
                ratio = f"{self._ratio(timings, t):.2f}"
                second = "" if t.second is None else f"{t.second:.2f} s"
                table.add_row(
                    "" if index else case, name, *times, ratio, f"{t.first:.2f} s", second
                )
            if case in self._limits:
                table.add_row("", "by hand", "", "", "", f"{self._limits[case]:.2f}")
            table.add_section()
        Console(width=120).print(table)

    def save(self, file: Path) -> None:
        """Write everything as JSON."""
        cases = {
            case: {
                name: {**dataclasses.asdict(t), "ratio": self._ratio(timings, t)}
                for name, t in timings.items()
            }
            for case, timings in self._cases.items()
        }
        data = {"title": self._title, "baseline": self._baseline, **self._facts, "cases": cases}
        if self._limits:
            data["by hand"] = self._limits
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(data, indent=1) + "\n")
        Console().print(f"wrote {file}")

    def _ratio(self, timings: Mapping[str, Timing], t: Timing) -> float:
        return timings[self._baseline].median / t.median


def machine() -> dict[str, str]:
    """Return the processor's name, the platform and Python's version."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].split(":", 1)[1].strip() if names else cpu
    return {"cpu": cpu, "platform": platform.platform(), "python": platform.python_version()}


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of packages that are installed."""
    found: dict[str, str] = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
