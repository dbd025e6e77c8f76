"""Masks combined as torch combines them: `a & b`, `a | b`, `a ^ b`, `~a`, of Bools only.

Of integers these would work on bits, which the language has no operators for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ...ir.op import NoGradient, Op, Pointwise, RuleCall, Sample, TensorSpec, operand
from ...ir.rules import predicate
from ...ir.types import TensorType, Type, bool_, show

_HELP: Final = "compare first, in parentheses: `(x > 0) & (y < 1)`"
_HELP_XOR: Final = "`^` combines masks; a power is written with `**`: `x ** 2`"


def _of_bools(call: RuleCall) -> Type:
    for index in range(len(call.types)):
        found = call.tensor(index)
        if call.known_dtype(found.dtype) != bool_:
            ty = TensorType(found.shape, found.dtype)
            help_ = _HELP_XOR if call.op.name == "bitwise_xor" else _HELP
            call.clash(f"`{call.said}` takes Bools, not {show(ty)}", index, help=help_)
    return predicate(call)


def _mask(*, name: str, doc: str, count: int, body: Callable[..., Any]) -> Op:
    """Return an operator on one mask or two."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input"), operand("other"))[:count],
        type_rule=_of_bools,
        lowering=Pointwise(body),
        grad=NoGradient("a truth value"),
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
    ):
        yield Sample((first, second)[:count])


bitwise_and: Final = _mask(
    name="bitwise_and",
    doc="Whether elements of two masks are both true; `a & b`.",
    count=2,
    body=lambda k, x, y: k.logical_and(x, y),
)

bitwise_or: Final = _mask(
    name="bitwise_or",
    doc="Whether at least one of the elements of two masks is true; `a | b`.",
    count=2,
    body=lambda k, x, y: k.logical_or(x, y),
)

bitwise_xor: Final = _mask(
    name="bitwise_xor",
    doc="Whether exactly one of the elements of two masks is true; `a ^ b`.",
    count=2,
    body=lambda k, x, y: k.logical_xor(x, y),
)

bitwise_not: Final = _mask(
    name="bitwise_not",
    doc="Whether elements of a mask are false; `~a`.",
    count=1,
    body=lambda k, x: k.logical_not(x),
)
