"""Where numbers belong in sorted ones."""

from __future__ import annotations

from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Clash,
    Library,
    NoGradient,
    Op,
    Promotion,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.types import TensorType, Type, int64, show
from ..shared.operands import as_tensors


def _searchsorted_type(call: RuleCall) -> Type:
    ordered, source = call.tensor(0), call.tensor(1)
    if ordered.rank == 0:
        call.clash(f"`searchsorted` takes sorted rows, not {show(ordered)}", 0)
    if ordered.rank > 1:
        message = f"`searchsorted` has no row of {show(ordered)} for each row of {show(source)}"
        if source.rank != ordered.rank:
            call.clash(message, 0, 1, help="one row for all is of 1 dimension")
        try:
            for left, right in zip(ordered.shape[:-1], source.shape[:-1], strict=True):
                call.solver.unify_dims(left, right)
        except Clash:
            call.clash(message, 0, 1)
    return TensorType(source.shape, int64)


def _searchsorted(torch: Any, ordered: Any, source: Any, right: bool) -> Any:
    ordered, source = as_tensors(torch, (ordered, source))
    # Torch warns of operands that it has to copy.
    return torch.searchsorted(ordered.contiguous(), source.contiguous(), right=right)


_ORDERED: Final = TensorSpec((5,), low=0.5, high=0.5)

searchsorted: Final = Op(
    name="searchsorted",
    doc="The position in a sorted row before which each element can be inserted: of equal elements "
    "before the first, or, with `right`, behind the last. There is one row, or one for each row of "
    "`input`.",
    params=(
        operand("sorted_sequence", promote=True),
        operand("input", promote=True),
        attribute("right", default=False, convert=kinds.flag),
    ),
    promotion=Promotion.COMMON,
    type_rule=_searchsorted_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_searchsorted, is_fresh=True),
    grad=NoGradient("positions are integers"),
    samples=lambda: (
        Sample((_ORDERED, TensorSpec((3, 4)))),
        Sample((_ORDERED, TensorSpec((4,), low=0.5, high=0.5)), {"right": True}),
        Sample((_ORDERED, TensorSpec((4,), low=0.5, high=0.5))),
        Sample((TensorSpec((2, 5), low=0.5, high=0.5), TensorSpec((2, 3)))),
        Sample((TensorSpec((3,), "int64", 2, 2), TensorSpec((4,), "int64", 0, 5))),
        Sample((TensorSpec((3,), "int64", 2, 2), TensorSpec((4,)))),
        Sample((_ORDERED, TensorSpec(()))),
        Sample((TensorSpec((0,)), TensorSpec((3,)))),
        Sample((_ORDERED, TensorSpec((0, 3)))),
        Sample((_ORDERED, TensorSpec((4, 3), contiguous=False))),
    ),
)
