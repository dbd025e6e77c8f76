"""Random programs with literals of all kinds give what Python and torch make of their source.

`python -m tests.property.differential --seed 0 --count 10000` tries more of them.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.property.differential.check import Outcome, differs, outcome
from tests.property.differential.programs import Drawn, draw
from tests.property.differential.reference import Reference, contains_undefined, int64
from tests.property.differential.smallest import smallest

pytestmark = [
    pytest.mark.filterwarnings("ignore::pyrelay.RelayWarning"),
    pytest.mark.host("says itself what runs its programs"),
]


def outcomes(seeds: range, lowering: str) -> dict[int, Outcome]:
    """Return what comes of the programs of some seeds."""
    return {seed: outcome(draw(seed), lowering) for seed in seeds}


def report(found: dict[int, Outcome]) -> str:
    """Return the programs that failed, with their seeds."""
    failed = {seed: each for seed, each in found.items() if each.failed}
    return "\n".join(
        f"seed {seed}: {each.kind}\n{draw(seed).source}\n{each.detail}"
        for seed, each in failed.items()
    )


@pytest.mark.parametrize("lowering", ["auto", "evaluator", "torch-regions", "c"])
def test_a_program_gives_what_its_source_gives_in_python(lowering: str) -> None:
    start = {"auto": 0, "evaluator": 100, "torch-regions": 200, "c": 5000}[lowering]
    found = outcomes(range(start, start + 12), lowering)
    assert not report(found)
    assert sum(each.kind == "equal" for each in found.values()) > 8


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100_000, 101_000, 100))
def test_many_programs_give_what_their_sources_give_in_python(start: int) -> None:
    lowering = ("evaluator", "auto", "torch-regions", "c")[start // 100 % 4]
    found = outcomes(range(start, start + 100), lowering)
    assert not report(found)
    assert sum(each.kind == "refused" for each in found.values()) < 5


@pytest.mark.parametrize(
    ("found", "expected", "difference"),
    [
        (torch.tensor(2.5), 2.5, None),
        (torch.tensor(0.0), 0, None),
        (torch.tensor(2), 2.0, "dtype"),
        (torch.tensor(2.5, dtype=torch.float64), 2.5, "dtype"),
        (torch.tensor(2.5), 2.6, "value"),
        (torch.tensor(3), 4, "integer"),
        ((1, [torch.tensor(2.0)]), (1, [2.0, 3.0]), "length"),
        (None, 0.0, "None"),
    ],
)
def test_a_value_differs_by_dtype_size_or_number(
    found: Any, expected: Any, difference: str | None
) -> None:
    assert differs(found, expected) == difference


def test_the_reference_knows_the_limits_of_an_integer() -> None:
    reference = Reference(
        "def main(n):\n    x = n * 9223372036854775807\n    return x, n // 0, 1\n"
    )
    assert [contains_undefined(v) for v in reference.run("main", [int64(2)])] == [True, True, False]


def test_a_program_that_fails_is_made_smaller() -> None:
    source = "def main(p0: Int):\n    x = p0 + 1\n    if p0 > 2:\n        x = 7 // p0\n"
    drawn = Drawn(source, ("Int",), "Float", ((3,), (0,)))
    small = smallest(drawn, lambda d: "//" in d.source, whole=False)
    assert small.calls == ((3,),)
    assert small.source == "def main(p0: Int):\n    x = 7 // 1\n"
