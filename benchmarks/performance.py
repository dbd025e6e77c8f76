"""pyrelay on a CPU against eager torch, torch.compile and JAX: every case of `benchmarks/cases`.

    python -m benchmarks.performance [--threads 2] [--busy] [--cases WORD ...] [--peers WORD ...]

Values are compared before anything is timed. Each case is prepared with empty caches ("first
call"); afterwards a second process, which finds what the first one built, calls each case once.
With `--busy` another process keeps one core busy meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block", type=float, default=0.02, help="seconds of a block of calls")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", nargs="*", default=[], help="those whose names contain one")
    parser.add_argument("--peers", nargs="*", default=[], help="those whose names contain one")
    parser.add_argument("--lowering", default="c")
    parser.add_argument(
        "--busy", action="store_true", help="beside a process that keeps a core busy"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results" / "performance.json")
    parser.add_argument("--first-calls", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


ARGS = arguments()
os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)  # before torch is loaded
if ARGS.first_calls is None:
    CACHES = tempfile.TemporaryDirectory(prefix="benchmark-")
    os.environ["PYRELAY_CACHE_DIR"] = f"{CACHES.name}/pyrelay"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{CACHES.name}/inductor"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from rich.console import Console  # noqa: E402

from benchmarks import bench  # noqa: E402
from benchmarks.bench import Candidate  # noqa: E402
from benchmarks.cases import CASES  # noqa: E402
from benchmarks.cases.case import Case, Training  # noqa: E402
from benchmarks.peers import PEERS, ours  # noqa: E402

OURS = "pyrelay"
BASELINE = "torch"


def candidates(case: Case) -> dict[str, Candidate]:
    """Return what does the work of a case, by name."""
    torch.manual_seed(0)
    args = case.work.args()
    found: dict[str, Candidate] = {}
    for name, make in PEERS.items():
        if name in case.work.skips or not is_wanted(name):
            continue
        try:
            found[name] = make(case, args)
        except ImportError as error:
            note(f"{name} takes no part: {error}")
    for name, function in case.work.others.items():
        found[name] = Candidate(lambda f=function: f(*args))
    if is_wanted(OURS):
        found[OURS] = ours(case, args, ARGS.lowering)
    return found


def is_wanted(peer: str) -> bool:
    """Return whether the command line asks for a peer; the baseline always takes part."""
    return peer == BASELINE or not ARGS.peers or any(word in peer for word in ARGS.peers)


_NOTED: set[str] = set()


def note(text: str) -> None:
    """Print a note, once."""
    if text not in _NOTED:
        _NOTED.add(text)
        Console(stderr=True).print(text, highlight=False)


def first_calls(case: Case, found: dict[str, Candidate]) -> dict[str, float]:
    """Return how long the first call of each candidate takes. A peer that fails, or whose values
    differ from the baseline's, leaves the case; pyrelay may do neither."""
    took: dict[str, float] = {}
    values: dict[str, list[Any]] = {}
    for name, candidate in list(found.items()):
        candidate.reset()
        start = time.perf_counter()
        try:
            values[name] = flat(candidate.work())
        except Exception as error:
            if name in (OURS, BASELINE):
                raise
            note(f"{case.name}: {name} fails: {type(error).__name__}")
            del found[name]
            continue
        took[name] = time.perf_counter() - start
        if isinstance(case, Training):
            values[name] += flat([candidate.work() for _ in range(2)])
    for name, value in values.items():
        if not agree(value, values[BASELINE], case.work.tolerance):
            if name == OURS:
                raise SystemExit(f"{case.name}: pyrelay's values differ from torch's")
            note(f"{case.name}: values of {name} differ")
            del found[name], took[name]
    return took


def agree(found: Sequence[Any], expected: Sequence[Any], tolerance: float) -> bool:
    """Return whether values are equal up to rounding, relative to the largest."""
    pairs = zip(found, expected, strict=True)
    return all(
        a.shape == b.shape
        and np.allclose(a, b, tolerance, tolerance * max(1, np.abs(b).max(initial=0)))
        for a, b in pairs
    )


def flat(value: Any) -> list[Any]:
    """Return the arrays in a value, in order."""
    if isinstance(value, tuple | list):
        return [array for part in value for array in flat(part)]
    if isinstance(value, Mapping):
        return flat(list(value.values()))
    if isinstance(value, torch.Tensor):
        return [value.detach().clone().numpy()]
    return [np.array(value)]


def main() -> None:
    """Measure, print one table, and write the results."""
    torch.set_num_threads(ARGS.threads)
    chosen = [c for c in CASES if not ARGS.cases or any(word in c.name for word in ARGS.cases)]
    if ARGS.first_calls is not None:
        again = {c.name: first_calls(c, candidates(c)) for c in chosen}
        ARGS.first_calls.write_text(json.dumps(again))
        return
    effort = bench.Effort(rounds=ARGS.rounds, block=ARGS.block, warmup=0.1)
    torch.compile(torch.tanh)(torch.ones(64))  # what it does once a process is no case's first call
    facts = {"threads": ARGS.threads, "lowering": ARGS.lowering, "busy": ARGS.busy}
    report = bench.Report("pyrelay on a CPU", BASELINE, ("torch", "jax", "pyrelay-lang"), **facts)
    with another_process() if ARGS.busy else nullcontext():
        for case in chosen:
            note(case.name)
            found = candidates(case)
            first = first_calls(case, found)
            report.add(case.name, bench.compare(found, effort, first), case.work.limit)
        report.add_second(in_second_process())
    report.print()
    report.save(ARGS.out)


@contextmanager
def another_process() -> Generator[None]:
    """Keep one core busy: a process that does not leave it."""
    core = max(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def in_second_process() -> dict[str, dict[str, float]]:
    """Return the first calls of a second process, which finds the caches of this one."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, "-m", "benchmarks.performance", *sys.argv[1:]]
        subprocess.run([*command, "--first-calls", file.name], check=True)
        return json.loads(Path(file.name).read_text())


if __name__ == "__main__":
    main()
