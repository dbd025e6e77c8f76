"""The sum of a matrix's diagonal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ...ir.op import (
    Expansion,
    Library,
    MadeOf,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    operand,
)
from ...ir.rules import with_rank
from ...ir.types import DType, DTypeKind, TensorType, Type, int64
from .products import diagonal

if TYPE_CHECKING:
    from ..builder import Value


def _trace_type(call: RuleCall) -> Type:
    dtype = call.known_dtype(with_rank(call, 0, 2).dtype)
    is_whole = isinstance(dtype, DType) and dtype.kind is not DTypeKind.FLOAT
    return TensorType((), int64 if is_whole else dtype)


def _trace_code(args: tuple[Value, ...], _: Mapping[str, Any]) -> Value:
    return diagonal(args[0]).sum()


trace: Final = Op(
    name="trace",
    doc="Sum of the diagonal of a matrix.",
    params=(operand("input"),),
    type_rule=_trace_type,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(lambda torch, x: torch.trace(x), is_fresh=True, fused=MadeOf(_trace_code)),
    grad=Expansion(_trace_code),
    samples=lambda: (
        Sample((TensorSpec((3, 3)),)),
        Sample((TensorSpec((2, 4)),)),
        Sample((TensorSpec((0, 3)),)),
        Sample((TensorSpec((4, 3), contiguous=False),)),
        Sample((TensorSpec((3, 3), "int64", -5, 5),)),
        Sample((TensorSpec((3, 3), "int32", -5, 5),)),
    ),
)
