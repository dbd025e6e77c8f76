"""What tests of calls share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pyrelay.runtime.entries.entry import Entry


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the functions whose calls take the general path."""
    found: list[str] = []
    call = Entry.__call__

    def noted(self: Entry, values: Sequence[Any]) -> Any:
        found.append(self.name)
        return call(self, values)

    monkeypatch.setattr(Entry, "__call__", noted)
    return found
