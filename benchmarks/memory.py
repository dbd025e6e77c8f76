"""The memory that steps of training and gradients need at their peak.

    python -m benchmarks.memory [WORD ...]

Counted is how much the resident set grows from before a model and its arguments are made to the
peak of some steps: parameters, the optimiser's moments, gradients, values saved for them, arenas,
but not what drawing the first weights takes for a while. Another model is trained before, so that
compiling does not count. The steps run in a thread of their own, whose arenas are new, and in a
process where malloc gives larger blocks back to the system when they are freed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.bench import Candidate
from benchmarks.cases import CASES
from benchmarks.cases.case import Calling, Case
from benchmarks.peers import eager, ours

OUT = Path(__file__).resolve().parent / "results" / "memory.json"
CALLS = 5
GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def candidate_of(case: Case, name: str) -> Candidate:
    """Return one way of doing the work of a case."""
    torch.manual_seed(0)
    args = case.work.args()
    return eager(case, args) if name == "torch" else ours(case, args, "c")


def growth_of(make: Callable[[], Callable[[], object]]) -> int:
    """Return how many bytes the process grows by from before some work is prepared to the peak of
    the work, which it has done before. `make` prepares it."""
    _repeat(make())
    options = copy_context()  # a thread begins without those of its maker
    with ThreadPoolExecutor(1) as thread:
        thread.submit(int).result()  # the thread begins
        before = _resident("VmRSS")
        work = thread.submit(options.run, make).result()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        thread.submit(options.run, _repeat, work).result()
    return _resident("VmHWM") - before


def _repeat(work: Callable[[], object]) -> None:
    for _ in range(CALLS):
        work()


def _resident(field: str) -> int:
    """Return a size of the process in bytes: `VmRSS` now, or `VmHWM` at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(field))
    return int(line.split()[1]) * 1024


def _in_process(case: str, name: str) -> int:
    """Return the growth in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", "--one", case, name]
    env = {**os.environ, **GIVES_BACK}
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=env).stdout)


def main(words: list[str]) -> None:
    """Measure, print a table, and write the results."""
    table = Table(title="peak memory of training and gradients")
    for heading in ("case", "torch", "pyrelay"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    found: dict[str, dict[str, int]] = {}
    for case in CASES:
        if isinstance(case, Calling) or (words and not any(w in case.name for w in words)):
            continue
        sizes = {name: _in_process(case.name, name) for name in ("torch", "pyrelay")}
        found[case.name] = sizes
        table.add_row(case.name, *(f"{size / 2**20:.1f} MiB" for size in sizes.values()))
    Console().print(table)
    if not words:
        OUT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        (chosen,) = (case for case in CASES if case.name == sys.argv[2])
        print(growth_of(lambda: candidate_of(chosen, sys.argv[3]).work))
    else:
        main(sys.argv[1:])
