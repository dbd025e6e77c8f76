"""Functions over functions on a CPU, against torch, `torch.func` and JAX: one table.

    python -m benchmarks.transforms [--threads 2] [--cases WORD ...]

Values are compared before anything is timed. Cases of gradients that save and compute again are
also run in processes of their own, which measure by how much they grow. The results are kept in
`results/transforms.json`, those of other cases as they were; the table for the documentation is
printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", nargs="*", default=[], help="those whose names contain one")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "transforms.json")
    parser.add_argument("--growth", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


ARGS = arguments()
os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)  # before torch is loaded

import torch  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

from benchmarks import bench  # noqa: E402
from benchmarks.memory import GIVES_BACK, growth_of  # noqa: E402
from benchmarks.transform_cases import CASES, Case, Way  # noqa: E402
from pyrelay import options  # noqa: E402

BASELINE = "torch"
PACKAGES = ("pyrelay", "torch", "jax")


def ways(case: Case) -> Mapping[str, Way]:
    """Return what does the work of a case, by name; JAX where it is installed."""
    found = dict(case.make())
    try:
        if case.in_jax is not None:
            found["JAX"] = case.in_jax()
    except ImportError as error:
        print(f"JAX takes no part: {error}")
    return found


def tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors of a result, of torch or of JAX."""
    return [torch.as_tensor(x if torch.is_tensor(x) else x.__array__()) for x in flat(value)]


def flat(value: Any) -> list[Any]:
    """Return the leaves of a result."""
    return pytree.tree_leaves(value)


def measured(case: Case) -> dict[str, bench.Timing]:
    """Compare the values of all ways, and time them against each other."""
    found, first = dict(ways(case)), {}
    expected: list[torch.Tensor] = []
    for name, work in found.items():
        began = time.perf_counter()
        made = tensors(work())
        first[name] = time.perf_counter() - began
        expected = expected or made
        torch.testing.assert_close(made, expected, rtol=case.tolerance, atol=case.tolerance)
    candidates = {name: bench.Candidate(work) for name, work in found.items()}
    return bench.compare(candidates, bench.Effort(rounds=ARGS.rounds), first)


def growths(case: Case) -> dict[str, int]:
    """Return by how many bytes a process grows that does the work in each way."""
    found: dict[str, int] = {}
    for name in ways(case):
        command = [sys.executable, "-m", "benchmarks.transforms", "--growth", case.name, name]
        env = {**os.environ, **GIVES_BACK}
        lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=env, text=True)
        found[name] = int(lines.stdout.splitlines()[-1])
    return found


def of_process(name: str, way: str) -> int:
    """Return by how much this process grows that does the work of a case in one way."""
    (case,) = (c for c in CASES if c.name == name)

    make = case.in_jax if way == "JAX" else (lambda: case.make()[way])
    assert make is not None
    return growth_of(make)


def markdown(cases: Mapping[str, Any]) -> str:
    """Return the table for the documentation: milliseconds, and how many times faster than torch;
    where it was measured, by how many MiB the process grows."""
    lines = [
        "| | torch | `torch.func` | JAX | pyrelay | times faster than torch |",
        "|---|---|---|---|---|---|",
    ]
    for name, case in cases.items():
        cells = [_cell(case, way) for way in ("torch", "torch.func", "JAX", "pyrelay")]
        ratio = case["torch"]["median"] / case["pyrelay"]["median"]
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio:.2f} |")
    return "\n".join(lines)


def _cell(case: Mapping[str, Any], way: str) -> str:
    if way not in case:
        return ""
    found = case[way]
    memory = f", {found['growth'] / 2**20:.0f} MiB" if "growth" in found else ""
    return f"{found['median'] * 1e3:.2f} ms{memory}"


def main() -> None:
    """Measure, print, and keep the results."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(ARGS.threads)
    if ARGS.growth:
        with options(lowering="c"):
            print(of_process(*ARGS.growth))
        return
    kept = json.loads(ARGS.out.read_text())["cases"] if ARGS.out.exists() else {}
    for case in CASES:
        if ARGS.cases and not any(word in case.name for word in ARGS.cases):
            continue
        with options(lowering="c"):
            found = {n: vars_of(t) for n, t in measured(case).items()}
        for name, size in (growths(case) if case.has_memory else {}).items():
            found[name]["growth"] = size
        kept[case.name] = found
        print(markdown({case.name: found}).splitlines()[-1], flush=True)
    facts = {**bench.machine(), "threads": ARGS.threads, "versions": bench.versions(PACKAGES)}
    ordered = {c.name: kept[c.name] for c in CASES if c.name in kept}
    ARGS.out.parent.mkdir(parents=True, exist_ok=True)
    ARGS.out.write_text(json.dumps({**facts, "cases": ordered}, indent=1) + "\n")
    print(markdown(ordered))


def vars_of(timing: bench.Timing) -> dict[str, Any]:
    """Return what is kept of a timing."""
    return {"median": timing.median, "p10": timing.p10, "p90": timing.p90, "first": timing.first}


if __name__ == "__main__":
    main()
