"""Random numbers that are made of uniform ones, from explicit keys: the same in every lowering."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    NoGradient,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import axis, floating
from ...ir.types import DType, TensorType, Type, float32, float64, int64, is_float, show
from ..primitive.arithmetic import maximum
from ..primitive.extrema import argmax
from ..primitive.math import log, log1p
from ..primitive.random import KEY_SPEC, check_key, uniform
from ..shared.precision import wide_dtype
from .declare import composite

if TYPE_CHECKING:
    from ...ir.dims import Dim
    from ..builder import Value

_LEAST: Final = {32: 2.0**-25, 64: 2.0**-54}
"""Half a step of uniform numbers, by the bits of their dtype: it stands for 0, whose logarithm is
infinite."""

_NO_PATH: Final = NoGradient("random numbers do not depend on any operand smoothly")


def _drawn_type(call: RuleCall) -> Type:
    check_key(call)
    dtype = call.attrs["dtype"] or float32
    if not is_float(dtype):
        call.clash(f"`{call.op.name}` draws floats, not {dtype}")
    return TensorType(call.attrs["size"], dtype)


def _exponential(key: Value, size: tuple[Dim, ...], dtype: DType) -> Value:
    return -log1p(-uniform(key, size=size, dtype=dtype))


def _gumbel(key: Value, size: tuple[Dim, ...], dtype: DType) -> Value:
    found = uniform(key, size=size, dtype=dtype)
    return -log(-log1p(-maximum(found, _LEAST[dtype.bits])))


def _distribution(
    *, name: str, doc: str, drawn: Callable[[Value, tuple[Dim, ...], DType], Value]
) -> Op:
    """Return an operator that draws numbers of a distribution without parameters."""

    # In half precision numbers are drawn in single: fewer steps would cut the tails off.
    def body(key: Value, *, size: tuple[Dim, ...], dtype: DType | None) -> Value:
        return drawn(key, size, wide_dtype(dtype or float32)).cast(dtype or float32)

    return composite(
        name=name,
        doc=doc,
        params=(
            operand("key"),
            attribute("size", (), kinds.shape),
            attribute("dtype", None, kinds.optional(kinds.dtype)),
        ),
        type_rule=_drawn_type,
        body=body,
        grad=_NO_PATH,
        shape=ShapeBehaviour.FIXED,
        samples=lambda: (
            Sample((KEY_SPEC,)),
            Sample((KEY_SPEC,), {"size": (3, 5)}),
            Sample((KEY_SPEC,), {"size": (4,), "dtype": float64}),
            Sample((KEY_SPEC,), {"size": (0, 3)}),
        ),
    )


exponential: Final = _distribution(
    name="exponential",
    doc="Numbers from the exponential distribution with mean 1.",
    drawn=_exponential,
)

gumbel: Final = _distribution(
    name="gumbel",
    doc="Numbers from the standard Gumbel distribution: the one added to logarithms of weights of "
    "which the largest is then drawn by its weight.",
    drawn=_gumbel,
)


def _categorical_type(call: RuleCall) -> Type:
    check_key(call)
    logits = floating(call, 1)
    dim = axis(call, call.attrs["dim"], logits.rank, 1)
    if logits.shape[dim].constant == 0:
        call.clash(f"`categorical` has nothing to choose from in {show(logits)}", 1)
    return TensorType((*logits.shape[:dim], *logits.shape[dim + 1 :]), int64)


def _categorical(key: Value, logits: Value, *, dim: int) -> Value:
    return argmax(logits + _gumbel(key, logits.shape, logits.dtype), dim=dim)


categorical: Final = composite(
    name="categorical",
    doc="Positions along `dim`, each drawn with a chance that is the softmax of `logits` there.",
    params=(operand("key"), operand("logits"), attribute("dim", -1, kinds.axis)),
    type_rule=_categorical_type,
    body=_categorical,
    grad=_NO_PATH,
    samples=lambda: (
        Sample((KEY_SPEC, TensorSpec((5,)))),
        Sample((KEY_SPEC, TensorSpec((3, 4)))),
        Sample((KEY_SPEC, TensorSpec((3, 4, 2))), {"dim": 1}),
        Sample((KEY_SPEC, TensorSpec((4, 3), contiguous=False)), {"dim": 0}),
        Sample((KEY_SPEC, TensorSpec((0, 3)))),
        Sample((KEY_SPEC, TensorSpec((6,), "float64"))),
    ),
)
