"""Derivatives of recursive programs take as many operators per element, however large the data."""

from __future__ import annotations

import pytest

from benchmarks.operator_counts import PROGRAMS, counts

DERIVATIVES = ("gradient", "jvp", "hvp")


@pytest.mark.host("what torch runs is counted")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("large", [400, pytest.param(3200, marks=pytest.mark.slow)])
def test_operators_over_those_of_the_value_are_flat(name: str, large: int) -> None:
    small, more = counts(PROGRAMS[name], 50), counts(PROGRAMS[name], large)
    for derivative in DERIVATIVES:
        before = small[derivative] / small["value"]
        after = more[derivative] / more["value"]
        assert after == pytest.approx(before, rel=0.1), derivative
    assert more["gradient"] < 6 * more["value"]
    assert more["jvp"] < 4 * more["value"]
    assert more["hvp"] < 16 * more["value"]
