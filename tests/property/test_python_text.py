"""Random programs, printed as Python and compiled again, are the same programs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, assume, given, settings

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.ir.module import Module
from tests.python_text import as_python, assert_reads_back
from tests.strategies import Program, as_trees, programs

NOT_IN_THE_LANGUAGE = ("do not tell",)


def check(module: Module) -> None:
    try:
        as_python(module)
    except CheckError as error:
        assume(not any(what in str(error) for what in NOT_IN_THE_LANGUAGE))
        raise
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
