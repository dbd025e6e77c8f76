"""Functions over numbers and small tensors, run whole by C, against Python and eager PyTorch.

Values are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "functions.json")
    return parser.parse_args()


ARGS = arguments()
os.environ.setdefault("OMP_NUM_THREADS", str(ARGS.threads))  # before torch is loaded

import bench  # noqa: E402
import torch  # noqa: E402

from pyrelay import Dim, Float, Int, Tensor, int64, options, relay  # noqa: E402

N, S, K = Dim("N"), Dim("S"), Dim("K")


def python_fib(n: int) -> int:
    """Return a Fibonacci number."""
    return n if n < 2 else python_fib(n - 1) + python_fib(n - 2)


@relay
def fib(n: Int) -> Int:
    """Return a Fibonacci number."""
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def remainders(n: Int) -> Int:
    """Return a sum of remainders."""
    total = 0
    for i in range(n):
        total = total + i * i % 7
    return total


def collatz(n: Int) -> Int:
    """Return how many steps lead to 1."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def root(a: Float) -> Float:
    """Return a square root, by Newton's method."""
    x = a
    while abs(x * x - a) > 1e-4:
        x = 0.5 * (x + a / x)
    return x


def eager_viterbi(
    seen: torch.Tensor, moves: torch.Tensor, shown: torch.Tensor, first: torch.Tensor
) -> torch.Tensor:
    """Return the scores of the best paths to each state."""
    score = first
    for t in range(len(seen)):
        score = torch.amax(score[:, None] + moves, dim=0) + shown[:, seen[t]]
    return score


@relay
def viterbi(
    seen: Tensor[int64, (N,)],
    moves: Tensor[Float, (S, S)],
    shown: Tensor[Float, (S, K)],
    first: Tensor[Float, (S,)],
) -> Tensor[Float, (S,)]:
    """Return the scores of the best paths to each state."""
    score = first
    for t in range(len(seen)):
        score = relay.amax(score[:, None] + moves, dim=0) + shown[:, seen[t]]
    return score


def kalman(
    n: Int, f: Tensor[Float, (4, 4)], p: Tensor[Float, (4, 4)], q: Tensor[Float, (4, 4)]
) -> Tensor[Float, (4, 4)]:
    """Return the covariance of a prediction, some steps ahead."""
    for _ in range(n):
        p = f @ p @ f.T + q
    return p


COMPILED = {python_fib: fib, eager_viterbi: viterbi}
"""What is compiled where that is not the same text."""


def cases() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return functions with their arguments, by the name of the case."""
    torch.manual_seed(0)
    observed = torch.randint(0, 8, (200,)), torch.randn(16, 16), torch.randn(16, 8), torch.randn(16)
    return {
        "fib(18)": (python_fib, (18,)),
        "fib(25)": (python_fib, (25,)),
        "remainders, 10,000": (remainders, (10_000,)),
        "collatz(837799)": (collatz, (837_799,)),
        "root(1e6), scalar while": (root, (torch.tensor(1e6),)),
        "viterbi, 200 steps, 16 states": (eager_viterbi, observed),
        "kalman, 50 steps": (kalman, (50, torch.eye(4) * 0.5, torch.eye(4), torch.eye(4))),
    }


def by(lowering: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    """Return a call of a compiled function by a lowering."""
    with options(lowering=lowering):
        return partial(copy_context().run, function, *args)


def main() -> None:
    """Measure, print a table and write the results."""
    report = bench.Report("functions that C runs whole", "eager", ("torch", "pyrelay-lang"))
    for name, (function, args) in cases().items():
        compiled = COMPILED.get(function) or relay(function)
        works = {
            "eager": partial(function, *args),
            "pyrelay torch": by("torch", compiled, args),
            "pyrelay c": by("c", compiled, args),
        }
        first: dict[str, float] = {}
        values: dict[str, Any] = {}
        for way, work in works.items():
            start = time.perf_counter()
            values[way] = work()
            first[way] = time.perf_counter() - start
        expected = torch.as_tensor(values["eager"])
        for value in values.values():
            torch.testing.assert_close(torch.as_tensor(value), expected)
        candidates = {way: bench.Candidate(work) for way, work in works.items()}
        effort = bench.Effort(rounds=ARGS.rounds)
        report.add(name, bench.compare(candidates, effort, first))
    report.print()
    report.save(ARGS.out)


if __name__ == "__main__":
    main()
