"""No test leaves an implementation of an operator behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyrelay.dispatch.registry import REGISTRY


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """Compare the table of implementations before and after a test."""
    before = REGISTRY.table
    yield
    assert REGISTRY.table.registrations == before.registrations
