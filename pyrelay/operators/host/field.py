"""Reading an attribute of a value before inference knows the type of the value.

`p.value` is a field of a record or the content of a cell. Inference puts the one or the other in
the place of this operator, so no checked program has it.
"""

from __future__ import annotations

from typing import Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import Host, NoGradient, Op, RuleCall, Sample, attribute, operand
from ...ir.types import Type


def _undecided(call: RuleCall) -> Type:
    call.type(0)
    raise AssertionError("inference has put something else in the place of this operator")


def _never(*_: object) -> object:
    raise AssertionError("no checked program calls this")


field: Final = Op(
    name="field",
    doc="A field of a record by its name, or the content of a cell.",
    params=(operand("input"), attribute("name", convert=kinds.text)),
    type_rule=_undecided,
    lowering=Host(_never),
    grad=NoGradient("no checked program has it"),
    samples=lambda: (Sample((0,), {"name": "x"}),),
)
