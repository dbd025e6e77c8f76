"""Functions of single elements that are made of others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ...ir.op import Clash, Layouts, Op, Promotion, Pullback, RuleCall, Sample, TensorSpec, operand
from ...ir.rules import broadcast_shapes, expect, numeric, same_dtype, with_rank
from ...ir.types import TensorType, Type, bool_, is_float, show
from ..declare import composite
from ..primitive.arithmetic import abs_, floor_divide, mod
from ..primitive.compare import less, logical_xor, where
from ..primitive.math import trunc
from ..shared.operands import as_tensor, as_tensors
from ..shared.samples import pairs_between

if TYPE_CHECKING:
    from ..builder import Value


def _shaped(p: Pullback, *cotangents: Value) -> tuple[Value, ...]:
    """Return cotangents in the shapes of the operands, which may have been broadcast."""
    return tuple(g.sum_to(x.shape) for g, x in zip(cotangents, p.args, strict=True))


def _integer_pairs() -> Iterable[Sample]:
    yield Sample((TensorSpec((5,), "int64", -9, 9), TensorSpec((5,), "int64", 1, 5)))
    yield Sample((TensorSpec((5,), "int32", -9, 9), TensorSpec((2, 5), "int32", -4, 0)))
    yield Sample((TensorSpec((5,), "int64", -9, 9), 2))


def _quotient(x: Value, y: Value) -> Value:
    if is_float(x.dtype):
        return x / y
    whole = floor_divide(abs_(x), abs_(y))
    return where(logical_xor(less(x, 0), less(y, 0)), -whole, whole)


def _torch_quotient(torch: Any, x: Any, y: Any) -> Any:
    x, y = as_tensors(torch, (x, y))
    return torch.div(x, y, rounding_mode=None if x.is_floating_point() else "trunc")


quotient: Final = composite(
    name="quotient",
    doc="Quotient of two tensors, element by element; that of integers is rounded towards zero, as "
    "in C and in Relay.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    body=_quotient,
    torch=_torch_quotient,
    samples=lambda: (
        *pairs_between(-2.0, 2.0, 0.5, 2.0),
        *pairs_between(-2.0, 2.0, -2.0, -0.5),
        *_integer_pairs(),
    ),
)


def _remainder(x: Value, y: Value) -> Value:
    rest = mod(abs_(x), abs_(y))
    return where(less(x, 0), -rest, rest)


fmod: Final = composite(
    name="fmod",
    doc="Remainder with the sign of the dividend.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    body=_remainder,
    # The size of 0 has no derivative, but a remainder by it has.
    grad=lambda p: _shaped(p, p.g, -(p.g * trunc(p.args[0] / p.args[1]))),
    torch=lambda torch, x, y: torch.fmod(*as_tensors(torch, (x, y))),
    torch_name="fmod",
    layouts=Layouts.ALIKE,
    samples=lambda: (
        *pairs_between(-9.0, 9.0, 0.5, 2.0),
        *pairs_between(-9.0, 9.0, -2.0, -0.5),
        *_integer_pairs(),
    ),
)


def _lerp(x: Value, end: Value, weight: Value) -> Value:
    # Each end is exact at its own weight.
    way = end - x
    return where(less(abs_(weight), 0.5), x + weight * way, end - way * (1.0 - weight))


def _lerp_grad(p: Pullback) -> tuple[Value, ...]:
    x, end, weight = p.args
    to_end = p.g * weight
    return _shaped(p, p.g - to_end, to_end, p.g * (end - x))


lerp: Final = composite(
    name="lerp",
    doc="`input + weight * (end - input)`: from `input` at weight 0 to `end` at weight 1.",
    params=tuple(operand(name, promote=True) for name in ("input", "end", "weight")),
    promotion=Promotion.FLOAT,
    type_rule=same_dtype,
    body=_lerp,
    grad=_lerp_grad,
    torch=lambda torch, *operands: torch.lerp(*as_tensors(torch, operands)),
    torch_name="lerp",
    is_fresh=True,
    layouts=Layouts.ALIKE,
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


def _one_shape(call: RuleCall) -> Type:
    ty = call.tensor(0)
    for place in (1, 2):
        expect(call, place, ty, f"`{call.op.name}` takes tensors of one shape")
    return ty


_FOUR: Final = TensorSpec((4,))
_WIDE: Final = TensorSpec((3,), "float64")

add_product: Final = composite(
    name="add_product",
    doc="`input + left * right`, of tensors of one shape; several operators in one call of torch, "
    "for `passes.rewrites.peepholes`.",
    params=(operand("input"), operand("left"), operand("right")),
    type_rule=_one_shape,
    body=lambda x, left, right: x + left * right,
    torch=lambda torch, x, left, right: torch.addcmul(x, left, right),
    torch_name="addcmul",
    is_fresh=True,
    samples=lambda: (
        Sample((TensorSpec((3, 4)), TensorSpec((3, 4)), TensorSpec((3, 4)))),
        Sample((TensorSpec((0, 3)), TensorSpec((0, 3)), TensorSpec((0, 3)))),
        Sample((_FOUR, TensorSpec((4,), contiguous=False), _FOUR)),
        Sample((_WIDE, _WIDE, _WIDE)),
    ),
)


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


def _masked_fill(torch: Any, x: Any, mask: Any, value: Any) -> Any:
    x = as_tensor(torch, x, mask)
    return torch.masked_fill(x, as_tensor(torch, mask, x), value)


masked_fill: Final[Op] = composite(
    name="masked_fill",
    doc="The tensor with `value` where the mask is true.",
    params=(operand("input", promote=True), operand("mask"), operand("value", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=_masked_fill_type,
    body=lambda x, mask, value: where(mask, value, x),
    torch=_masked_fill,
    torch_name="masked_fill",
    layouts=Layouts.ALIKE,
    samples=lambda: (
        Sample((_MATRIX, TensorSpec((4, 3), "bool"), TensorSpec(()))),
        Sample((_MATRIX, TensorSpec((3,), "bool"), 0.5)),
        Sample((TensorSpec((3,)), TensorSpec((4, 3), "bool"), TensorSpec(()))),
        Sample((TensorSpec((0, 3)), TensorSpec((0, 3), "bool"), 1.0)),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((4, 3), "bool"), 1.0)),
    ),
)
