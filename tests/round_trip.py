"""A plugin for pytest: every module of every test, at every stage, is printed and read back.

python -m pytest -p tests.round_trip tests/models
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


def _step(self: Program, stage: Stage, module: Module, run: Any) -> Module:
    made = _STEP(self, stage, module, run)
    text = to_text(made)
    if len(text) < LONGEST:
        again = parse_module(text)
        assert alpha_equal(again, made), f"{stage.value}: reads back as another program\n{text}"
        assert to_text(again) == text
    return made


Program._step = _step  # pyright: ignore[reportAttributeAccessIssue]
