"""The program that torch autograd runs instead of another: its value, and the pullback."""

from __future__ import annotations

from ..ir.expr import Rule
from ..ir.types import is_differentiable
from .derive import derive
from .program import Program


def pullback_of(program: Program) -> Program | None:
    """Give the program of a program's value and pullback; None where no parameter, or not the
    result, can carry a gradient."""
    wrt = tuple(i for i, ty in enumerate(program.type.params) if is_differentiable(ty))
    if not wrt or not is_differentiable(program.type.result):
        return None
    module, name = derive(program.translated, program.entry, Rule.VJP, wrt, single=False)
    return Program(module, name, program.data)
