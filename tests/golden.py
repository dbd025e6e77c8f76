"""Golden tests: a text is compared with the file that holds what it should be.

    def test_a_program_prints(golden):
        golden("lenet.relay", to_text(module))

compares with `tests/golden/<folder of the test>/<name of the test file>/lenet.relay`.
`pytest --update-golden` writes the files instead; the difference is then reviewed like code.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"


class Golden:
    """Compares texts with the files of one test file."""

    def __init__(self, folder: Path, *, update: bool) -> None:
        self._folder = folder
        self._update = update

    def __call__(self, name: str, text: str) -> None:
        """Compare a text with a file, or write the file."""
        path = self._folder / name
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"{path} does not exist; `pytest --update-golden` writes it")
        assert text == path.read_text(encoding="utf-8")


def folder_of(test_file: Path) -> Path:
    """Return the folder of a test file's golden files."""
    inside = test_file.relative_to(TESTS)
    return GOLDEN / inside.parent / inside.stem.removeprefix("test_")
