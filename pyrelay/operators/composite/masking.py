"""Elements replaced where a mask is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...ir.op import (
    Clash,
    Elementwise,
    Library,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    operand,
)
from ...ir.rules import broadcast_shapes, with_rank
from ...ir.types import TensorType, Type, bool_, show
from ..primitive import compare
from ..shared.moving import broadcast_index
from ..shared.operands import as_tensor

if TYPE_CHECKING:
    from ...ir.declaration.elements import Elements, Place, Source
    from ..builder import Value

_MATRIX: Final = TensorSpec((4, 3))


def _masked_fill_type(call: RuleCall) -> Type:
    source, mask = call.tensor(0), call.tensor(1)
    if call.known_dtype(mask.dtype) != bool_:
        call.clash(f"`masked_fill` takes a mask of Bool, not {show(mask)}", 1)
    value = with_rank(call, 2, 0)
    try:
        shape = broadcast_shapes(call, [source.shape, mask.shape])
    except Clash:
        call.clash(f"`masked_fill` cannot broadcast {show(mask)} to {show(source)}", 0, 1)
    return TensorType(shape, value.dtype)


def _masked_fill_grad(p: Pullback) -> tuple[Value, None, Value]:
    source, mask, value = p.args
    blank = p.g.builder.zeros(TensorType((), source.dtype))
    to_value = compare.where(mask, p.g, blank).sum_to(value.shape)
    return masked_fill(p.g, mask, blank).sum_to(source.shape), None, to_value


def _masked_fill(torch: Any, x: Any, mask: Any, value: Any) -> Any:
    x = as_tensor(torch, x, mask)
    mask = as_tensor(torch, mask, x)
    return torch.masked_fill(x, mask, value)


def _masked_fill_element(k: Elements, place: Place, x: Source, mask: Source, value: Source) -> Any:
    kept = x(*broadcast_index(place.index, x.shape))
    return k.where(mask(*broadcast_index(place.index, mask.shape)), value(), kept)


masked_fill: Final = Op(
    name="masked_fill",
    doc="The tensor with `value` where the mask is true.",
    params=(operand("input", promote=True), operand("mask"), operand("value", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=_masked_fill_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_masked_fill, fused=Elementwise(_masked_fill_element)),
    grad=_masked_fill_grad,
    samples=lambda: (
        Sample((_MATRIX, TensorSpec((4, 3), "bool"), TensorSpec(()))),
        Sample((_MATRIX, TensorSpec((3,), "bool"), 0.5)),
        Sample((TensorSpec((3,)), TensorSpec((4, 3), "bool"), TensorSpec(()))),
        Sample((TensorSpec((0, 3)), TensorSpec((0, 3), "bool"), 1.0)),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4, 3), "bool"), 1.0)),
    ),
)
