"""No program, however deep or long, may change Python's recursion limit."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def recursion_limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which anything sets the recursion limit, be it for a while."""

    def refuse(limit: int) -> None:
        raise AssertionError(f"the recursion limit was set to {limit}")

    before = sys.getrecursionlimit()
    monkeypatch.setattr(sys, "setrecursionlimit", refuse)
    yield
    assert sys.getrecursionlimit() == before
