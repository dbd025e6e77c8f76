"""Bools and integers combined bit by bit: `a & b`, `a | b`, `a ^ b`, `~a`.

Of Bools they combine masks, element by element; a Bool that meets an integer is 0 or 1, as in
torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ...ir.op import NoGradient, Op, Pointwise, Promotion, RuleCall, Sample, TensorSpec, operand
from ...ir.rules import elementwise
from ...ir.types import AnyDType, TensorType, is_float, show

_HELP: Final = "compare first, in parentheses: `(x > 0) & (y < 1)`"
_HELP_XOR: Final = "`^` combines bits; a power is written with `**`: `x ** 2`"


def _of_bits(call: RuleCall, dtype: AnyDType) -> AnyDType:
    if is_float(call.known_dtype(dtype)):
        ty = show(TensorType(call.tensor(0).shape, dtype))
        help_ = _HELP_XOR if call.op.name == "bitwise_xor" else _HELP
        call.clash(f"`{call.name}` takes Bools or integers, not {ty}", 0, help=help_)
    return dtype


def _bitwise(*, name: str, doc: str, count: int, body: Callable[..., Any]) -> Op:
    """Return an operator on the bits of one operand or two."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input", promote=True), operand("other", promote=True))[:count],
        promotion=Promotion.COMMON if count == 2 else Promotion.NONE,
        type_rule=elementwise(_of_bits),
        lowering=Pointwise(body),
        grad=NoGradient("an integer or a truth value"),
        samples=lambda: _samples(count),
    )


def _samples(count: int) -> Iterable[Sample]:
    matrix, row = TensorSpec((3, 4), "bool"), TensorSpec((4,), "bool", contiguous=False)
    for first, second in (
        (matrix, matrix),
        (matrix, row),
        (TensorSpec((2, 1, 4), "bool"), TensorSpec((3, 1), "bool")),
        (TensorSpec((), "bool"), TensorSpec((3,), "bool")),
        (TensorSpec((0, 2), "bool"), TensorSpec((), "bool")),
        (TensorSpec((3, 4), "int64", -99, 99), TensorSpec((4,), "int64", -99, 99)),
        (TensorSpec((6,), "int32", -99, 99), TensorSpec((6,), "int32", -99, 99)),
        (TensorSpec((6,), "uint8", 0, 255), TensorSpec((), "uint8", 0, 255)),
        (TensorSpec((), "int64", -99, 99), TensorSpec((), "int64", -99, 99)),
        (TensorSpec((5,), "int64", -99, 99), 6),
    ):
        yield Sample((first, second)[:count])


bitwise_and: Final = _bitwise(
    name="bitwise_and",
    doc="The bits that are set in both of two integers, or whether two Bools are both true; "
    "`a & b`.",
    count=2,
    body=lambda k, x, y: k.bit_and(x, y),
)

bitwise_or: Final = _bitwise(
    name="bitwise_or",
    doc="The bits that are set in at least one of two integers, or whether one of two Bools is "
    "true; `a | b`.",
    count=2,
    body=lambda k, x, y: k.bit_or(x, y),
)

bitwise_xor: Final = _bitwise(
    name="bitwise_xor",
    doc="The bits that are set in exactly one of two integers, or whether exactly one of two "
    "Bools is true; `a ^ b`.",
    count=2,
    body=lambda k, x, y: k.bit_xor(x, y),
)

bitwise_not: Final = _bitwise(
    name="bitwise_not",
    doc="The bits that are not set in an integer, `-x - 1`, or whether a Bool is false; `~a`.",
    count=1,
    body=lambda k, x: k.bit_not(x),
)
