"""An interpreter with its program fixed, against the program written by hand and interpretation.

The first Futamura projection should cost what the program costs that one would write. Values are
compared before anything is timed.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "specialise.json")
    return parser.parse_args()


ARGS = arguments()
os.environ.setdefault("OMP_NUM_THREADS", str(ARGS.threads))  # before torch is loaded

import torch  # noqa: E402

from benchmarks import bench  # noqa: E402
from pyrelay import Float, relay  # noqa: E402


@dataclass(frozen=True)
class Variable:
    """The argument of the program."""


@dataclass(frozen=True)
class Number:
    """A number of the program."""

    value: Float


@dataclass(frozen=True)
class Binary:
    """An operator of the program, by its sign."""

    operator: str
    left: Term
    right: Term


@dataclass(frozen=True)
class Square:
    """A product of a term with itself."""

    of: Term


Term = Variable | Number | Binary | Square


@relay
def evaluate(term: Term, x: Float) -> Float:
    """Return the value of a program."""
    match term:
        case Variable():
            return x
        case Number(value):
            return value
        case Square(of):
            root = evaluate(of, x)
            return root * root
        case Binary(operator, left, right):
            a, b = evaluate(left, x), evaluate(right, x)
            if operator == "+":
                return a + b
            if operator == "-":
                return a - b
            assert operator == "*", f"{operator} is no operator"
            return a * b


@relay
def by_hand(x: Float) -> Float:
    """Return (2 x + 1) (x - 3) + (x + 2) ** 2."""
    a = (2.0 * x + 1.0) * (x - 3.0)
    b = x + 2.0
    return a + b * b


X = Variable()
PROGRAM = Binary(
    "+",
    Binary("*", Binary("+", Binary("*", Number(2.0), X), Number(1.0)), Binary("-", X, Number(3.0))),
    Square(Binary("+", X, Number(2.0))),
)


def first(function: Any, *args: Any) -> float:
    """Return the seconds of the first call."""
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def main() -> None:
    """Compare, print and save."""
    torch.set_num_threads(ARGS.threads)
    start = time.perf_counter()
    special = relay.specialise(evaluate, term=PROGRAM)
    made = time.perf_counter() - start
    report = bench.Report(
        "an interpreter specialised to a program of ten operators",
        "by hand",
        ("torch",),
        seconds_to_specialise=made,
    )
    slopes = [relay.grad(f) for f in (by_hand, special)]
    interpreted_slope = relay.grad(evaluate, wrt="x")
    x = torch.tensor(1.5)
    cases: dict[str, dict[str, Any]] = {
        "value": {
            "by hand": lambda: by_hand(x),
            "specialised": lambda: special(x),
            "interpreted": lambda: evaluate(PROGRAM, x),
        },
        "gradient": {
            "by hand": lambda: slopes[0](x),
            "specialised": lambda: slopes[1](x),
            "interpreted": lambda: interpreted_slope(PROGRAM, x),
        },
    }
    effort = bench.Effort(rounds=ARGS.rounds)
    for case, works in cases.items():
        firsts = {name: first(work) for name, work in works.items()}
        expected = works["by hand"]()
        for work in works.values():
            torch.testing.assert_close(work(), expected)
        candidates = {name: bench.Candidate(work) for name, work in works.items()}
        report.add(case, bench.compare(candidates, effort, firsts))
    report.print()
    report.save(ARGS.out)


if __name__ == "__main__":
    main()
