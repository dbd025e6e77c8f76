"""Division as C and Relay do it: integers are divided towards zero."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ..op import (
    Effect,
    Library,
    Op,
    Promotion,
    Pullback,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    operand,
)
from ..rules import numeric
from .math import trunc
from .operands import as_tensors
from .samples import pairs_between

if TYPE_CHECKING:
    from ..build import Value


def _quotient(torch: Any, x: Any, y: Any) -> Any:
    x, y = as_tensors(torch, (x, y))
    return torch.div(x, y, rounding_mode=None if x.is_floating_point() else "trunc")


def _shaped(p: Pullback, *cotangents: Value) -> tuple[Value, ...]:
    """Give cotangents in the shapes of the operands, which may have been broadcast."""
    return tuple(g.sum_to(x.shape) for g, x in zip(cotangents, p.args, strict=True))


def _integer_pairs() -> Iterable[Sample]:
    yield Sample((TensorSpec((5,), "int64", -9, 9), TensorSpec((5,), "int64", 1, 5)))
    yield Sample((TensorSpec((5,), "int32", -9, 9), TensorSpec((2, 5), "int32", -4, 0)))
    yield Sample((TensorSpec((5,), "int64", -9, 9), 2))


quotient: Final = Op(
    name="quotient",
    doc="Quotient of two tensors, element by element; that of integers is rounded towards zero.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=numeric,
    effect=Effect.NONE,
    shape=ShapeBehaviour.POINTWISE,
    lowering=Library(_quotient),
    grad=lambda p: _shaped(p, p.g / p.args[1], -(p.g * (p.out / p.args[1]))),
    hidden=(),
    hyper=(),
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
    effect=Effect.NONE,
    shape=ShapeBehaviour.POINTWISE,
    lowering=Library(lambda torch, x, y: torch.fmod(*as_tensors(torch, (x, y)))),
    grad=lambda p: _shaped(p, p.g, -(p.g * trunc(p.args[0] / p.args[1]))),
    hidden=(),
    hyper=(),
    torch_name="fmod",
    samples=lambda: (
        *pairs_between(-9.0, 9.0, 0.5, 2.0),
        *pairs_between(-9.0, 9.0, -2.0, -0.5),
        *_integer_pairs(),
    ),
)
