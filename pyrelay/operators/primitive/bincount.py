"""How often each of the integers from 0 occurs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Library,
    Linear,
    Op,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import floating, integral, with_rank
from ...ir.types import TensorType, Type, int64, show
from ..shared.operands import is_given
from .gathering import index_select

if TYPE_CHECKING:
    from ..builder import Value


def _bincount_type(call: RuleCall) -> Type:
    integral(call, 0)
    source = with_rank(call, 0, 1)
    bins = call.solver.fresh_dim("bins")
    if not call.given(1):
        return TensorType((bins,), int64)
    floating(call, 1)
    weights = with_rank(call, 1, 1)
    message = f"`bincount` takes one weight for each integer: {show(weights)} for {show(source)}"
    call.unify_dims(weights.shape[0], source.shape[0], 1, message)
    return TensorType((bins,), weights.dtype)


def _bincount_grad(p: Pullback) -> tuple[None, Value | None]:
    source, weights = p.args
    return None, index_select(p.g, source, dim=0) if is_given(weights) else None


def _bincount(torch: Any, x: Any, weights: Any, minlength: int) -> Any:
    found = torch.bincount(x, weights, minlength)
    return found if weights is None else found.to(weights.dtype)


_WHOLE: Final = TensorSpec((7,), "int64", 0, 5)

bincount: Final = Op(
    name="bincount",
    doc="How often each of the integers from 0 occurs, or the sum of the weights of those that are "
    "equal to it: as many as the largest asks for, and at least `minlength`. A negative integer "
    "stops the program. On a GPU weights are added in any order.",
    params=(
        operand("input"),
        optional("weights"),
        attribute("minlength", 0, kinds.at_least(0, kinds.whole)),
    ),
    type_rule=_bincount_type,
    shape=ShapeBehaviour.DYNAMIC,
    lowering=Library(_bincount, is_fresh=True),
    push=Linear(("weights",)),
    grad=_bincount_grad,
    samples=lambda: (
        Sample((_WHOLE, None)),
        Sample((_WHOLE, None), {"minlength": 9}),
        Sample((_WHOLE, TensorSpec((7,)))),
        Sample((_WHOLE, TensorSpec((7,), "float64")), {"minlength": 2}),
        Sample((TensorSpec((0,), "int64", 0, 5), None)),
        Sample((TensorSpec((7,), "int32", 0, 5), TensorSpec((7,), contiguous=False))),
    ),
)
