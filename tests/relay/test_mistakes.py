"""Mistakes in texts and the exact messages about them: `mistakes/<case>.relay` and its golden."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrelay import relay
from pyrelay.diagnostics.diagnostic import CheckError
from tests.golden import Golden

FOLDER = Path(__file__).parent / "mistakes"
CASES = sorted(path.name for path in FOLDER.glob("*.relay"))


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_rendered_exactly_and_in_the_users_file(
    case: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER)
    with pytest.raises(CheckError) as caught:
        relay.parse(Path(case)).check()
    assert all(d.primary is not None for d in caught.value.diagnostics)
    golden(case.replace(".relay", ".txt"), f"{caught.value}\n")


def test_there_are_enough_mistakes() -> None:
    assert len(CASES) >= 12
