"""The shadow of a cell: where a gradient that flows through the cell is kept on its way back."""

from __future__ import annotations

from typing import Any, Final

from ...ir.op import Host, NoGradient, Op, RuleCall, operand
from ...ir.types import UNIT, RefType, Type, show


def _shadow_type(call: RuleCall) -> Type:
    call.solver.unify(call.types[0], RefType(UNIT))
    cell = call.type(1)
    if not isinstance(cell, RefType):
        call.clash(f"`shadow` takes a cell, not {show(cell)}", 1)
    return RefType(call.types[2])


def _shadow(run: Any, cell: Any, zero: Any) -> Any:
    return run.shadow_of(cell, zero)


shadow: Final = Op(
    name="shadow",
    doc="The cell that holds the cotangent of a cell's content, in one run of a backward function.",
    params=(operand("run"), operand("cell"), operand("zero")),
    type_rule=_shadow_type,
    # The first reader makes it, with zero in it, so the order of readers is not observable.
    lowering=Host(_shadow),
    grad=NoGradient("a new cell holds zero"),
    samples=lambda: (),
)
