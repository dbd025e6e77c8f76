"""Every module of a test, at every stage, is printed and read back.

So it is for the tests of some folders (tests/conftest.py), and as a plugin for any:

python -m pytest -p tests.round_trip tests/unit
"""

from __future__ import annotations

from pyrelay.infer.infer import infer
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import Call
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify.stages import Stage
from pyrelay.operators.table import BY_NAME
from pyrelay.passes.manager import Ran
from pyrelay.runtime.compile.program import Program
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

_RAN = Program._ran

LONGEST = 200_000
"""Longer texts have tests of their own, under tests/scale."""


def read_back(self: Program, ran: Ran) -> None:
    """Check that the text of a module reads back to it, behind each pass that gives a stage."""
    _RAN(self, ran)
    if ran.step.gives is None:
        return
    text = to_text(ran.after)
    operators = called(ran.after)
    # A text knows operators by their names: it cannot hold two of one name, nor is it saved.
    names = {op.name for op in operators}
    if len(text) < LONGEST and len(names) == len(operators):
        again = parse_module(text, operators={**BY_NAME, **{op.name: op for op in operators}})
        assert alpha_equal(again, ran.after), f"{ran.step.name}: reads back as another\n{text}"
        assert to_text(again) == text
        if ran.stage is Stage.TYPED:
            infer(again)  # what is printed has types that are found again


def called(module: Module) -> tuple[Op, ...]:
    """Return the operators that a module calls: a text names them, and whoever reads one with a
    user's own says which these are."""
    nodes = (n for f in module.functions.values() for n in post_order(f))
    calls = (n.callee for n in nodes if isinstance(n, Call))
    return tuple(dict.fromkeys(op for op in calls if isinstance(op, Op)))


def pytest_configure() -> None:
    """Read everything back, where this is a plugin."""
    Program._ran = read_back
