"""Derivatives of recursive programs take as many operators per element, however large the data."""

from __future__ import annotations

import pytest

from benchmarks.operator_counts import PROGRAMS, counts, mapped_runs, runs

DERIVATIVES = ("gradient", "jvp", "hvp")


@pytest.mark.host("what torch runs is counted")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("large", [400, pytest.param(3200, marks=pytest.mark.slow)])
def test_operators_over_those_of_the_value_are_flat(name: str, large: int) -> None:
    small, more = (counts(runs(PROGRAMS[name], size)) for size in (50, large))
    for derivative in DERIVATIVES:
        before = small[derivative] / small["value"]
        after = more[derivative] / more["value"]
        assert after == pytest.approx(before, rel=0.1), derivative
    assert more["gradient"] < 6 * more["value"]
    assert more["jvp"] < 4 * more["value"]
    assert more["hvp"] < 16 * more["value"]


@pytest.mark.host("what torch runs is counted")
@pytest.mark.parametrize("name", PROGRAMS)
def test_operators_of_a_batch_are_as_many_for_any_size(name: str) -> None:
    _, small, large = (counts(mapped_runs(PROGRAMS[name], batch)) for batch in (4, 4, 1024))
    assert small == large
