"""Kernels and training steps on a GPU: pyrelay against torch eager, torch.compile (default, with
CUDA graphs, and max-autotune, which has them too) and what the device itself can do.

Every case (`gpu_cases.py`) runs the same mathematics from the same tensors everywhere: float32 is
float32, so tf32 is off for all, convolutions of torch included. What each candidate gives is
compared with torch eager before anything is timed. Elementwise code and row reductions are also
given as a share of the bandwidth of a copy that is measured in the same run, products as a share of
the device's own matrix rate. Operands are larger than the caches of any device; blocks of calls
alternate between candidates (`bench.py`), so clocks treat all alike, and what they were before and
after is in the result file.

Where there is no GPU, the result file says so, and nothing else. `--rehearse` runs every case small
on the CPU, our kernels in Triton's interpreter and torch's compiled by its default, to see that all
agree; it times nothing and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch
from rich.console import Console

from benchmarks import bench
from benchmarks.bench import Candidate
from benchmarks.gpu_cases import Case, cases
from pyrelay import options

HERE: Final = Path(__file__).resolve().parent
MODES: Final = {
    "torch.compile": "default",
    "torch.compile, CUDA graphs": "reduce-overhead",
    "torch.compile, max-autotune": "max-autotune",
}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose names hold one of: a,b")
    parser.add_argument("--quick", action="store_true", help="fewer rounds; no max-autotune")
    parser.add_argument("--rehearse", action="store_true", help="every case, small, on the CPU")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "gpu.json")
    return parser.parse_args()


def ways(case: Case, modes: Mapping[str, str]) -> dict[str, Callable[[], Any]]:
    """Return every way of doing a case, that of torch eager first."""
    compiled = {name: case.compiled(mode) for name, mode in modes.items()}
    return {"torch eager": case.theirs, **compiled, "pyrelay": case.ours}


def check(name: str, case: Case, found: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Stop unless all ways give what torch eager does. Gives the seconds of their first calls."""
    expected: list[torch.Tensor] = []
    first: dict[str, float] = {}
    for way, work in found.items():
        case.reset()
        for number in range(3 if case.trains else 1):
            began = time.perf_counter()
            value = work().detach().clone()  # a graph may give the same storage again
            value.isfinite().all().item()  # waits
            first.setdefault(way, time.perf_counter() - began)
            if way == "torch eager":
                expected.append(value)
            torch.testing.assert_close(
                *(value.float(), expected[number].float()),
                rtol=case.tolerance,
                atol=case.tolerance,
                msg=lambda m, way=way: f"{name}, {way}: {m}",
            )
    case.reset()
    return first


def bandwidth(device: torch.device) -> float:
    """Return the bytes a second that a copy of 1 GiB reads and writes."""
    source = torch.empty(2**28, device=device)
    target = torch.empty_like(source)
    copy = Candidate(lambda: target.copy_(source), finish=lambda: torch.cuda.synchronize(device))
    timing = bench.compare({"copy": copy}, bench.Effort(), {"copy": 0.0})["copy"]
    return 2 * source.numel() * 4 / timing.median


def matrix_rate(device: torch.device) -> float:
    """Return the operations a second of a plain product of bfloat16 matrices of 8192 x 8192."""
    x = torch.randn(8192, 8192, device=device).bfloat16()
    plain = Candidate(lambda: x @ x, finish=lambda: torch.cuda.synchronize(device))
    timing = bench.compare({"product": plain}, bench.Effort(), {"product": 0.0})["product"]
    return 2 * 8192**3 / timing.median


def rehearse(chosen: Callable[[str], bool]) -> None:
    """Run every case small on the CPU and compare."""
    device = torch.device("cpu")
    modes = {"torch.compile": "default"} if shutil.which("g++") else {}
    with options(lowering="triton-interpret"):
        for name, make in cases(device, small=True).items():
            if chosen(name):
                case = make()
                check(name, case, ways(case, modes))
                torch._dynamo.reset()  # noqa: SLF001  one compiled graph a case
                Console().print(f"{name}: agrees")


def say_there_is_none(out: Path) -> None:
    """Write a result file that claims nothing."""
    text = "no GPU was at hand, so nothing was measured"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"title": "GPU", "device": None, "result": text}, indent=1) + "\n")
    Console().print(f"{text}; wrote {out}")


def main() -> None:
    """Do what the command line says."""
    args = arguments()
    parts = [part for part in args.only.split(",") if part]

    def chosen(name: str) -> bool:
        return not parts or any(part in name for part in parts)

    if args.rehearse:
        os.environ["TRITON_INTERPRET"] = "1"  # before anything imports it
        rehearse(chosen)
        return
    if not torch.cuda.is_available():
        say_there_is_none(args.out)
        return
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True  # the best convolution for all who call one
    with options(lowering="triton"):
        measure(chosen, quick=args.quick, out=args.out)


def measure(chosen: Callable[[str], bool], *, quick: bool, out: Path) -> None:
    """Measure every case, print one table and write it."""
    device = torch.device("cuda", torch.cuda.current_device())
    copied, multiplied = bandwidth(device), matrix_rate(device)
    shares: dict[str, dict[str, float]] = {}
    states = [state()]
    report = bench.Report(
        f"GPU: {torch.cuda.get_device_name(device)}",
        "torch eager",
        ("pyrelay", "torch", "triton"),
        device=torch.cuda.get_device_name(device),
        cuda=torch.version.cuda or torch.version.hip,
        precision="float32 without tf32, but for what says bfloat16",
        copy_bytes_per_second=copied,
        matrix_operations_per_second=multiplied,
        shares=shares,
        states=states,
    )
    effort = replace(bench.Effort(), rounds=7) if quick else bench.Effort()
    modes = dict(list(MODES.items())[:2]) if quick else MODES
    for name, make in cases(device, small=False).items():
        if not chosen(name):
            continue
        case = make()
        torch._dynamo.reset()  # noqa: SLF001  one compiled graph a case
        found = ways(case, modes)
        first = check(name, case, found)
        candidates = {
            way: Candidate(work, case.reset, lambda: torch.cuda.synchronize(device))
            for way, work in found.items()
        }
        timings = bench.compare(candidates, effort, first)
        report.add(name, timings)
        for way, timing in timings.items():
            share = max(
                case.bytes / timing.median / copied, case.operations / timing.median / multiplied
            )
            if share:
                shares.setdefault(name, {})[way] = round(share, 3)
    states.append(state())
    report.print()
    report.save(out)
    for name, found in shares.items():
        Console().print(f"{name}: share of the device's own rate: {found}")


def state() -> str:
    """Return the driver, the clocks and the temperature of the device, where they can be read."""
    asked = "driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.draw,power.limit"
    command = ["nvidia-smi", f"--query-gpu={asked},temperature.gpu", "--format=csv,noheader"]
    if shutil.which(command[0]) is None:
        return "nobody tells"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip()


if __name__ == "__main__":
    main()
