"""Every module of a test, at every stage, is printed and read back.

So it is for the tests of some folders (tests/conftest.py), and as a plugin for any:

python -m pytest -p tests.round_trip tests/unit
"""

from __future__ import annotations

from typing import Any

from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.module import Module
from pyrelay.ir.parser import parse_module
from pyrelay.ir.printer import to_text
from pyrelay.ir.verify import Stage
from pyrelay.runtime.program import Program

_STEP = Program._step

LONGEST = 200_000
"""Longer texts have tests of their own, under tests/scale."""


def read_back(self: Program, stage: Stage, module: Module, run: Any) -> Module:
    """Give the next stage of a program, whose text reads back to it."""
    made = _STEP(self, stage, module, run)
    text = to_text(made)
    if len(text) < LONGEST:
        again = parse_module(text)
        assert alpha_equal(again, made), f"{stage.value}: reads back as another program\n{text}"
        assert to_text(again) == text
    return made


def pytest_configure() -> None:
    """Read everything back, where this is a plugin."""
    Program._step = read_back  # pyright: ignore[reportAttributeAccessIssue]
