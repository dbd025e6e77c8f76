"""Random programs, printed as Python and compiled again, are the same programs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings

from pyrelay.ir.module import Module
from tests.python_text import assert_reads_back
from tests.strategies import Program, programs
from tests.trees import as_trees


def check(module: Module) -> None:
    with TemporaryDirectory() as folder:
        assert_reads_back(module, "main", Path(folder))


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(programs(effects=True))
def test_a_program_reads_back(program: Program) -> None:
    check(program.module)


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(programs())
def test_a_tree_reads_back(program: Program) -> None:
    check(as_trees(program.module))
