"""Fixtures of the tests of arguments."""

from __future__ import annotations

from typing import Any

import pytest

from pyrelay.runtime.border.plain import Plain, UnfitError


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note the identities of instances with data in them that a check of arguments enters."""
    found: list[Any] = []
    take = Plain.take

    def noted(walk: Plain, value: Any, plan: Any) -> Any:
        try:
            host = take(walk, value, plan)
        except UnfitError:
            found.extend([value] * 100)
            raise
        found.extend(key for instances in walk.instances.values() for key in instances)
        return host

    monkeypatch.setattr(Plain, "take", noted)
    return found
