"""The catalogue names every mistake once, in its family, with its explanation."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

from pyrelay.diagnostics import catalogue
from pyrelay.diagnostics.diagnostic import Problem

ENTRIES = catalogue.entries()
HUNDREDS = {
    "captures": 1,
    "language": 1,
    "names": 1,
    "patterns": 2,
    "signatures": 1,
    "sites": 1,
    "sizes": 2,
    "types": 2,
    "dtypes": 2,
    "undetermined": 2,
    "derivatives": 3,
    "batching": 3,
    "specialise": 3,
    "gradient": 3,
    "model": 4,
    "run": 5,
    "call": 5,
    "dispatch": 5,
    "data": 1,
    "lists": 1,
    "layouts": 2,
    "text": 6,
}


def code_of(entry: type[Problem]) -> str:
    """Return the code that an entry's source names; each entry names one."""
    found = set(re.findall(r"\bRL\d{3}\b", inspect.getsource(entry)))
    assert len(found) == 1, f"{entry.__name__} names {sorted(found)}"
    return found.pop()


def test_the_catalogue_is_not_empty_and_its_files_are_the_known_families() -> None:
    files = {path.stem for path in Path(catalogue.__file__).parent.glob("*.py")}
    assert files - {"__init__"} <= set(HUNDREDS)
    assert ENTRIES


def test_codes_are_unique() -> None:
    counts = Counter(code_of(entry) for entry in ENTRIES)
    assert [code for code, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.__name__)
def test_an_entry_is_frozen_documented_and_numbered_in_its_family(entry: type[Problem]) -> None:
    assert dataclasses.fields(entry) is not None
    assert entry.__dataclass_params__.frozen  # type: ignore[attr-defined]
    family = entry.__module__.rsplit(".", 1)[1]
    assert code_of(entry)[2] == str(HUNDREDS[family])
    explanation = inspect.cleandoc(entry.__doc__ or "")
    assert explanation.splitlines()[0].endswith(".")
    assert not explanation.startswith(f"{entry.__name__}("), "the generated docstring says nothing"
