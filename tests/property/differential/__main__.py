"""Try many programs: `python -m tests.property.differential --seed 0 --count 1000`.

Each kind of failure and of refusal is printed once, with its seed; `--shrink` prints the smallest
program that still fails so. The lowering `mixed` takes the evaluator for even seeds and compiled
code for odd ones.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter

from tests.property.differential.check import Outcome, outcome
from tests.property.differential.programs import Drawn, draw
from tests.property.differential.smallest import smallest


def main() -> None:
    """Try the programs of a range of seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--lowering", default="mixed")
    parser.add_argument("--shown", type=int, default=1, help="programs printed of each kind")
    parser.add_argument("--shrink", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    kinds: Counter[str] = Counter()
    for seed in range(given.seed, given.seed + given.count):
        lowering = lowering_of(seed, given.lowering)
        drawn = draw(seed)
        found = outcome(drawn, lowering)
        kinds[found.name] += 1
        if kinds[found.name] <= given.shown and (found.failed or found.kind == "refused"):
            small = smaller(drawn, found, lowering) if given.shrink else drawn
            detail = outcome(small, lowering).detail
            _write(f"=== seed {seed}, {lowering}: {found.name}\n{small.source}\n{detail}\n")
    for name, count in kinds.most_common():
        _write(f"{count:7} {name}")


def lowering_of(seed: int, lowering: str) -> str:
    """Return what runs the program of a seed."""
    return ("evaluator", "auto")[seed % 2] if lowering == "mixed" else lowering


def smaller(drawn: Drawn, found: Outcome, lowering: str) -> Drawn:
    """Return a smaller program that fails in the same way."""

    def fails(program: Drawn) -> bool:
        try:
            return outcome(program, lowering).name == found.name
        except Exception:  # a smaller program may be nonsense
            return False

    return smallest(drawn, fails, whole=found.kind == "refused")


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
