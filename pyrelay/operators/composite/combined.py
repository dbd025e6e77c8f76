"""Operators that are several in one call of torch, for `passes.rewrites.peepholes`."""

from __future__ import annotations

from typing import Final

from ...ir.op import Library, MadeOf, Op, RuleCall, Sample, ShapeBehaviour, TensorSpec, operand
from ...ir.rules import expect
from ...ir.types import Type


def _one_shape(call: RuleCall) -> Type:
    ty = call.tensor(0)
    for place in (1, 2):
        expect(call, place, ty, f"`{call.op.name}` takes tensors of one shape")
    return ty


add_product: Final = Op(
    name="add_product",
    doc="`input + left * right`, of tensors of one shape.",
    params=(operand("input"), operand("left"), operand("right")),
    type_rule=_one_shape,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(
        lambda torch, x, left, right: torch.addcmul(x, left, right),
        is_fresh=True,
        fused=MadeOf(lambda args, _: args[0] + args[1] * args[2]),
    ),
    grad=lambda p: (p.g, p.g * p.args[2], p.g * p.args[1]),
    torch_name="addcmul",
    samples=lambda: (
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4)), TensorSpec((3, 4)))),
        Sample((TensorSpec((0, 3)), TensorSpec((0, 3)), TensorSpec((0, 3)))),
        Sample((TensorSpec((4,)), TensorSpec((4,), contiguous=False), TensorSpec((4,)))),
        Sample(
            (TensorSpec((3,), "float64"), TensorSpec((3,), "float64"), TensorSpec((3,), "float64"))
        ),
    ),
)
