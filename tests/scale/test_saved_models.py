"""Long and deeply nested programs are saved, loaded and run."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.expr import Var, type_of
from pyrelay.ir.module import Module
from pyrelay.ir.types import UNIT
from pyrelay.runtime.border.places import Parameter
from pyrelay.runtime.compile.program import Program
from pyrelay.runtime.entries.call_signature import Argument, Interface
from pyrelay.runtime.entries.open_program import EvalProgram, OpenProgram
from pyrelay.runtime.interop.export import Exported, load_bytes
from pyrelay.runtime.values.representation import NO_DATA
from tests.scale.programs import chain, nested, var

X = torch.tensor([0.3, -0.7], dtype=torch.float64)


def exported(module: Module) -> Exported:
    """Return `main` of a module as a model that has no parameters."""
    main = module.functions["main"]
    params: tuple[Var, ...] = (var("params", UNIT), var("state", UNIT), *main.params)
    program = Program(module.with_functions({"main": replace(main, params=params)}), "main")
    arguments = tuple(Argument(p.name) for p in main.params)
    parameters = tuple(Parameter(p.name, type_of(p), p.span) for p in params)
    interface = Interface("main", arguments, None, {}, (), ())
    opened = OpenProgram(program.translated, "main", NO_DATA)
    return Exported(EvalProgram(interface, program, parameters, NOWHERE, opened), (), ())


@pytest.mark.parametrize(
    ("bindings", "depth"),
    [
        (2_000, 250),
        pytest.param(100_000, 20_000, marks=(pytest.mark.slow, pytest.mark.timeout(1800))),
    ],
)
def test_programs_of_any_size_are_saved_and_loaded(bindings: int, depth: int) -> None:
    for module, args in ((chain(bindings), (X,)), (nested(depth, in_tail=False), (X, depth - 1))):
        model = exported(module)
        data = model.to_bytes()
        loaded = load_bytes(data)
        assert loaded.to_bytes() == data
        assert torch.equal(loaded(*args), model(*args))
