"""The golden fixture writes files when the option asks for it, and else refuses differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import GOLDEN, TESTS, Golden, folder_of


def test_what_was_written_is_accepted(tmp_path: Path) -> None:
    Golden(tmp_path / "new", update=True)("a.txt", "é\n")
    Golden(tmp_path / "new", update=False)("a.txt", "é\n")


def test_a_difference_fails(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("before")
    with pytest.raises(AssertionError):
        Golden(tmp_path, update=False)("a.txt", "after")


def test_a_file_that_does_not_exist_fails(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="--update-golden"):
        Golden(tmp_path, update=False)("a.txt", "text")


def test_the_files_of_a_test_lie_under_its_own_name() -> None:
    folder = folder_of(TESTS / "unit" / "ir" / "test_printer.py")
    assert folder == GOLDEN / "unit" / "ir" / "printer"
