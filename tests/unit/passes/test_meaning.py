"""What simplifies a program keeps what it computes, with closures and without."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyrelay.ir.module import Module
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.closures import first_order
from pyrelay.passes.simplify.cse import share
from pyrelay.passes.simplify.dce import remove_dead
from pyrelay.passes.simplify.fold import fold
from pyrelay.passes.simplify.inline import inline
from pyrelay.passes.simplify.simplify import simplify
from tests.unit.passes.programs import ARGUMENTS, folding, program, value

CHANGES: dict[str, Callable[[Module], Module]] = {
    "cse": share,
    "dce": lambda module: remove_dead(module, "main"),
    "fold": lambda module: fold(module, folding),
    "inline": lambda module: inline(module, "main"),
    "simplify": lambda module: simplify(module, "main", folding),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_program_keeps_its_meaning(name: str, change: Callable[[Module], Module]) -> None:
    module = program(name)
    for source in (module, first_order(module, "main")):
        made = change(source)
        verify(made, Stage.ANF)
        assert value(made, name).equal(value(module, name))
