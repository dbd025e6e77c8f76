"""Elements between those of two tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...ir.op import (
    Elementwise,
    Library,
    Op,
    Promotion,
    Pullback,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    operand,
)
from ...ir.rules import same_dtype
from ..shared.moving import broadcast_index
from ..shared.operands import as_tensors

if TYPE_CHECKING:
    from ...ir.declaration.elements import Elements, Place, Source
    from ..builder import Value


def _lerp_element(k: Elements, place: Place, x: Source, end: Source, weight: Source) -> Any:
    first, last, share = (s(*broadcast_index(place.index, s.shape)) for s in (x, end, weight))
    way = k.sub(last, first)
    # Each end is exact at its own weight.
    from_first = k.add(first, k.mul(share, way))
    from_last = k.sub(last, k.mul(way, k.sub(k.const(1.0), share)))
    return k.where(k.lt(k.abs(share), k.const(0.5)), from_first, from_last)


def _lerp_grad(p: Pullback) -> tuple[Value, Value, Value]:
    x, end, weight = p.args
    to_end = p.g * weight
    to_weight = p.g * (end - x)
    found = (p.g - to_end, to_end, to_weight)
    first, last, share = (g.sum_to(a.shape) for g, a in zip(found, p.args, strict=True))
    return first, last, share


lerp: Final = Op(
    name="lerp",
    doc="`input + weight * (end - input)`: from `input` at weight 0 to `end` at weight 1.",
    params=(
        operand("input", promote=True),
        operand("end", promote=True),
        operand("weight", promote=True),
    ),
    promotion=Promotion.FLOAT,
    type_rule=same_dtype,
    shape=ShapeBehaviour.POINTWISE,
    lowering=Library(
        lambda torch, *operands: torch.lerp(*as_tensors(torch, operands)),
        is_fresh=True,
        fused=Elementwise(_lerp_element),
    ),
    grad=_lerp_grad,
    samples=lambda: (
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4)), TensorSpec((3, 4), low=0.0, high=1.0))),
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4)), 0.25)),
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4)), 0.75)),
        Sample((TensorSpec((2, 1, 4)), TensorSpec((3, 1)), TensorSpec((4,)))),
        Sample((TensorSpec(()), TensorSpec((3,)), TensorSpec(()))),
        Sample((TensorSpec((0, 3)), TensorSpec((3,)), 0.5)),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4, 3)), 1.5)),
        Sample((TensorSpec((3,), "int64", -5, 5), TensorSpec((3,), "int64", -5, 5), 0.5)),
        Sample((TensorSpec((5,), "float64"), TensorSpec((5,), "float64"), -0.5)),
    ),
)
