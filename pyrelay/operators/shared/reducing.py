"""The vocabulary of reductions: which dims go, what shape and dtype is left, how to undo it.

`dim` is None for all dims, one dim or several, counted from the end when negative; `keepdim` leaves
a dim of size 1 in place of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim, product
from ...ir.op import RuleCall, Sample, TensorSpec, TypeRule, attribute
from ...ir.rules import axes, axis, drop_axes
from ...ir.types import AnyDType, DType, DTypeKind, TensorType, Type, int64, is_float

if TYPE_CHECKING:
    from ..builder import Value


def reduced_dims(value: Any) -> tuple[int, ...] | None:
    """Return the normal form of a reduction's `dim`: a tuple, or None for all, which `()` means."""
    return None if value is None else kinds.axes(value) or None


_KEEPDIM: Final = attribute("keepdim", False, kinds.flag)
OVER_DIMS: Final = (attribute("dim", None, reduced_dims), _KEEPDIM)
"""The attributes of reductions over any dims."""
OVER_DIM: Final = (attribute("dim", None, kinds.optional(kinds.axis)), _KEEPDIM)
"""The attributes of reductions over one dim, or all."""
DTYPE: Final = attribute("dtype", None, kinds.optional(kinds.dtype))
"""The dtype to accumulate in."""


def reduced_axes(dims: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """Return the dims of a checked reduction counted from 0."""
    return tuple(range(rank)) if dims is None else tuple(d % rank for d in dims)


def kept(value: Value, operand: Value, dims: tuple[int, ...] | None) -> Value:
    """Return a reduction's result, or its cotangent, with a 1 for each dim it reduced."""
    shape = drop_axes(operand.shape, reduced_axes(dims, operand.rank), keepdim=True)
    return value.reshape(*shape)


def count(operand: Value, dims: tuple[int, ...] | None) -> Dim:
    """Return the number of elements that become one."""
    return product(tuple(operand.shape[d] for d in reduced_axes(dims, operand.rank)))


def reduced_type(result: Callable[[RuleCall, AnyDType], AnyDType]) -> TypeRule:
    """Return the rule of a reduction over `dim`; `result` gives the result's dtype."""

    def rule(call: RuleCall) -> Type:
        ty = call.tensor(0)
        gone = axes(call, call.attrs["dim"], ty.rank)
        shape = drop_axes(ty.shape, gone, keepdim=call.attrs["keepdim"])
        return TensorType(shape, result(call, ty.dtype))

    return rule


def along_dim(result: Callable[[RuleCall, AnyDType], AnyDType]) -> TypeRule:
    """Return the rule of what goes along `dim` and leaves it; `result` gives the dtype."""

    def rule(call: RuleCall) -> Type:
        ty = call.tensor(0)
        axis(call, call.attrs["dim"], ty.rank)
        return TensorType(ty.shape, result(call, ty.dtype))

    return rule


def accumulated_dtype(call: RuleCall, dtype: AnyDType) -> AnyDType:
    """Return the dtype of a sum or product: as asked for, and else int64 for integers and bools."""
    if call.attrs["dtype"] is not None:
        return call.attrs["dtype"]
    dtype = call.known_dtype(dtype)
    return int64 if isinstance(dtype, DType) and dtype.kind is not DTypeKind.FLOAT else dtype


def float_dtype(call: RuleCall, dtype: AnyDType) -> AnyDType:
    """Return the dtype of a reduction of floats: as asked for, and else the operand's."""
    asked = call.attrs.get("dtype")
    if asked is not None and not is_float(asked):
        call.clash(f"`{call.op.name}` gives a float, not {asked}", 0)
    return dtype if asked is None else asked


def to_operand(value: Value, operand: Value) -> Value | None:
    """Return a cotangent in the operand's dtype; None for an operand that carries none."""
    return value.cast(operand.dtype) if is_float(operand.dtype) else None


def float_reductions() -> Iterable[Sample]:
    """Return floats under every form of `dim` and `keepdim`, 0-d and strided."""
    yield Sample((TensorSpec((3, 4)),))
    yield Sample((TensorSpec(()),))
    for dim in (0, -1, (0, 2), (-1, 1), None):
        yield Sample((TensorSpec((2, 3, 4)),), {"dim": dim})
        yield Sample((TensorSpec((2, 3, 4)),), {"dim": dim, "keepdim": True})
    yield Sample((TensorSpec((4, 3), contiguous=False),), {"dim": 1})
    yield Sample((TensorSpec((0, 3)),), {"dim": 1})
    yield Sample((TensorSpec((1, 3)),), {"dim": 0})


def integer_reductions() -> Iterable[Sample]:
    """Return integers and bools to reduce."""
    yield Sample((TensorSpec((3, 4), "int64", -5, 5),), {"dim": 0})
    yield Sample((TensorSpec((3, 4), "int32", -5, 5),))
    yield Sample((TensorSpec((5,), "bool"),))
    yield Sample((TensorSpec((), "int64", -5, 5),))
