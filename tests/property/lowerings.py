"""One program by several lowerings, all stages of the compiler included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pyrelay.config import options
from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.runtime.compile.program import Program as Stages
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.strategies import Program
from tests.tolerances import assert_program

CPU = torch.device("cpu")


def check(
    module: Module, entry: str, arguments: Callable[[], list[Any]], lowerings: Sequence[str]
) -> None:
    """Compare what each lowering gives, twice, with what the evaluator gives."""
    stages = Stages.of_typed(module, entry)
    expected = stages.interpret(arguments(), CPU)
    for lowering in lowerings:
        with options(lowering=lowering):
            for _ in range(2):  # the second call finds what the first has kept
                assert_program(stages.compiled(CPU)(*arguments()), expected)


def differentiated(program: Program, text: str) -> Module:
    """Return a program with functions that differentiate it, which are yet to be expanded."""
    bare = to_text(program.module).replace(", typed]", "]", 1)
    return infer(parse_module(bare + text))
