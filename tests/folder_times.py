"""A report of the time of tests per folder: `pytest --folder-times`.

The times of set-up, call and tear-down are added for every test of a folder, over all workers.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath
from typing import Any


def table(reports: list[Any]) -> list[str]:
    """Return one line for each folder, slowest first: seconds, tests, path."""
    seconds: defaultdict[str, float] = defaultdict(float)
    tests: defaultdict[str, int] = defaultdict(int)
    for report in reports:
        folder = str(PurePosixPath(report.nodeid.partition("::")[0]).parent)
        seconds[folder] += report.duration
        tests[folder] += report.when == "call"
    slowest = sorted(seconds, key=lambda folder: -seconds[folder])
    return [f"{seconds[f]:8.1f} s {tests[f]:6d} tests  {f}" for f in slowest]
