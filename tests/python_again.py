"""A plugin for pytest: the program of every test is printed as Python and compiled again.

python -m pytest -p tests.python_again tests/models
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.ir.module import Module
from pyrelay.ir.printer import to_text
from pyrelay.ir.verify import Stage
from pyrelay.passes.normal_form import to_anf
from pyrelay.runtime.program import Program
from pyrelay.translate.printing.file import File
from tests.python_text import assert_reads_back

_STEP = Program._step

LONGEST = 60_000
"""The text of longer programs takes too long to compile twice in every test."""
REFUSED = ("which is no name of a module",)
"""What stays refused: operators that no file can import, such as those of captured numbers."""

_seen: set[str] = set()
_folder = Path(tempfile.mkdtemp(prefix="printed"))


def _check(typed: Module, entry: str) -> None:
    text = to_text(typed)
    if len(text) > LONGEST or text in _seen:
        return
    _seen.add(text)  # what is compiled again is a program too, and ends here
    names = File(to_anf(typed)).functions
    try:
        printed = assert_reads_back(typed, names[entry or next(iter(names))], _folder)
    except CheckError as error:
        if any(what in str(error) for what in REFUSED):
            return
        raise AssertionError(f"{text}\nis printed as Python that is refused:\n{error}") from error
    assert printed


def _step(self: Program, stage: Stage, module: Module, run: Any) -> Module:
    made = _STEP(self, stage, module, run)
    if stage is Stage.TYPED:
        _check(made, self.entry)
    return made


Program._step = _step  # pyright: ignore[reportAttributeAccessIssue]
