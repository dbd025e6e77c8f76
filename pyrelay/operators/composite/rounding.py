"""Division as C and Relay do it: integers are divided towards zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from ...ir.rules import numeric
from ...ir.types import DType, is_float
from ..primitive.math import trunc
from ..shared.moving import broadcast_index
from ..shared.operands import as_tensors
from ..shared.samples import pairs_between

if TYPE_CHECKING:
    from ...ir.declaration.elements import Elements, Place, Source
    from ...ir.declaration.scalars import Scalars
    from ..builder import Value


def _quotient(torch: Any, x: Any, y: Any) -> Any:
    x, y = as_tensors(torch, (x, y))
    return torch.div(x, y, rounding_mode=None if x.is_floating_point() else "trunc")


def _shaped(p: Pullback, *cotangents: Value) -> tuple[Value, ...]:
    """Return cotangents in the shapes of the operands, which may have been broadcast."""
    return tuple(g.sum_to(x.shape) for g, x in zip(cotangents, p.args, strict=True))


def _integer_pairs() -> Iterable[Sample]:
    yield Sample((TensorSpec((5,), "int64", -9, 9), TensorSpec((5,), "int64", 1, 5)))
    yield Sample((TensorSpec((5,), "int32", -9, 9), TensorSpec((2, 5), "int32", -4, 0)))
    yield Sample((TensorSpec((5,), "int64", -9, 9), 2))


def _quotient_element(k: Scalars, x: Any, y: Any, dtype: DType) -> Any:
    if is_float(dtype):
        return k.div(x, y)
    zero = k.const(0)
    whole = k.floordiv(k.abs(x), k.abs(y))
    return k.where(k.logical_xor(k.lt(x, zero), k.lt(y, zero)), k.neg(whole), whole)


def _remainder(k: Scalars, x: Any, y: Any, dtype: DType) -> Any:
    rest = k.mod(k.abs(x), k.abs(y))
    return k.where(k.lt(x, k.const(0)), k.neg(rest), rest)


def _each(body: Callable[[Scalars, Any, Any, DType], Any]) -> Elementwise:
    """Return the meaning of an operator on the elements of two broadcast operands of one dtype."""

    def element(k: Elements, place: Place, x: Source, y: Source) -> Any:
        left, right = (v(*broadcast_index(place.index, v.shape)) for v in (x, y))
        return body(k, left, right, x.dtype)

    return Elementwise(element)


quotient: Final = Op(
    name="quotient",
    doc="Quotient of two tensors, element by element; that of integers is rounded towards zero.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    shape=ShapeBehaviour.POINTWISE,
    lowering=Library(_quotient, fused=_each(_quotient_element)),
    grad=lambda p: _shaped(p, p.g / p.args[1], -(p.g * (p.out / p.args[1]))),
    torch_name=None,
    samples=lambda: (
        *pairs_between(-2.0, 2.0, 0.5, 2.0),
        *pairs_between(-2.0, 2.0, -2.0, -0.5),
        *_integer_pairs(),
    ),
)

fmod: Final = Op(
    name="fmod",
    doc="Remainder with the sign of the dividend.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    shape=ShapeBehaviour.POINTWISE,
    lowering=Library(
        lambda torch, x, y: torch.fmod(*as_tensors(torch, (x, y))), fused=_each(_remainder)
    ),
    grad=lambda p: _shaped(p, p.g, -(p.g * trunc(p.args[0] / p.args[1]))),
    samples=lambda: (
        *pairs_between(-9.0, 9.0, 0.5, 2.0),
        *pairs_between(-9.0, 9.0, -2.0, -0.5),
        *_integer_pairs(),
    ),
)
