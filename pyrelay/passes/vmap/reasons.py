"""Why operators cannot be batched, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.op import Effect, Host, Op
from ...operators.host.sizes import as_bound, as_size
from ...operators.primitive.gathering import bincount, nonzero
from ...operators.primitive.index import SLICING

_SIZED: Final = "its result has a size that differs between elements"

_REASONS: Final[Mapping[Op, tuple[str, str]]] = {
    nonzero: (_SIZED, "use the mask itself: `relay.where(mask, x, 0)`"),
    bincount: (_SIZED, "sum `relay.one_hot(x, num_classes)` over its first dim"),
    as_size: ("a size is the same for all elements", "make it of what is not batched"),
    as_bound: (
        "slices of one tensor have one length for all elements",
        "select with a mask: `relay.where(relay.arange(n) < stop, x, 0)`",
    ),
    **dict.fromkeys(
        SLICING,
        (
            "a mask selects a number of elements that differs in the batch",
            "use the mask itself: `relay.where(mask, x, 0)`",
        ),
    ),
}


def why_not(op: Op) -> tuple[str, str, str]:
    """Return the part of an operator that cannot be batched, why, and what to write instead."""
    what = f"`{op.name}`"
    if op in _REASONS:
        why, way = _REASONS[op]
        return what, why, way
    if op.effect & (Effect.IO | Effect.STATE) or isinstance(op.lowering, Host):
        why = "it works on single values of the host"
        return what, why, "return the value, and use it outside of `relay.vmap`"
    return what, "it has no batching rule for these operands", "call it in a loop"
