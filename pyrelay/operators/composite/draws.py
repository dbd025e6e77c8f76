"""Random numbers that are made of uniform ones, from explicit keys: the same in every lowering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Library,
    MadeOf,
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
from ...ir.types import DType, TensorType, Type, float32, int64, show
from ..primitive.arithmetic import maximum
from ..primitive.extrema import argmax
from ..primitive.math import log, log1p
from ..primitive.random import DRAWN, KEY_SPEC, check_key, drawn_samples, drawn_type, uniform
from ..shared import philox
from ..shared.precision import wide_dtype

if TYPE_CHECKING:
    from ...ir.dims import Dim
    from ..builder import Value

_LEAST: Final = {32: 2.0**-25, 64: 2.0**-54}
"""Half a step of uniform numbers, by the bits of their dtype: it stands for 0, whose logarithm is
infinite."""

_NO_PATH: Final = NoGradient("random numbers do not depend on any operand smoothly")


def _exponential_of(key: Value, size: tuple[Dim, ...], dtype: DType) -> Value:
    return -log1p(-uniform(key, size=size, dtype=dtype))


def _gumbel_of(key: Value, size: tuple[Dim, ...], dtype: DType) -> Value:
    found = uniform(key, size=size, dtype=dtype)
    return -log(-log1p(-maximum(found, _LEAST[dtype.bits])))


def _exponential(torch: Any, key: Any, size: tuple[int, ...], dtype: Any) -> Any:
    return -torch.log1p(-philox.uniform(torch, key, prod(size), dtype).reshape(size))


def _gumbel(torch: Any, key: Any, size: tuple[int, ...], dtype: Any) -> Any:
    found = philox.uniform(torch, key, prod(size), dtype).reshape(size)
    least = _LEAST[64 if dtype == torch.float64 else 32]
    return -torch.log(-torch.log1p(-found.clamp(min=least)))


def _distribution(
    *, name: str, doc: str, body: Callable[..., Any], code: Callable[..., Value]
) -> Op:
    """Return an operator that draws numbers of a distribution without parameters."""

    # In half precision numbers are drawn in single: fewer steps would cut the tails off.
    def drawn(torch: Any, key: Any, size: tuple[int, ...], dtype: Any) -> Any:
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        return body(torch, key, size, wide).to(dtype or torch.float32)

    def made(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
        dtype = attrs["dtype"] or float32
        return code(args[0], attrs["size"], wide_dtype(dtype)).cast(dtype)

    return Op(
        name=name,
        doc=doc,
        params=DRAWN,
        type_rule=drawn_type,
        shape=ShapeBehaviour.FIXED,
        lowering=Library(drawn, is_fresh=True, fused=MadeOf(made)),
        grad=_NO_PATH,
        torch_name=None,
        samples=drawn_samples,
    )


exponential: Final = _distribution(
    name="exponential",
    doc="Numbers from the exponential distribution with mean 1.",
    body=_exponential,
    code=_exponential_of,
)

gumbel: Final = _distribution(
    name="gumbel",
    doc="Numbers from the standard Gumbel distribution: the one added to logarithms of weights of "
    "which the largest is then drawn by its weight.",
    body=_gumbel,
    code=_gumbel_of,
)


def _categorical_type(call: RuleCall) -> Type:
    check_key(call)
    logits = floating(call, 1)
    dim = axis(call, call.attrs["dim"], logits.rank, 1)
    if logits.shape[dim].constant == 0:
        call.clash(f"`categorical` has nothing to choose from in {show(logits)}", 1)
    return TensorType((*logits.shape[:dim], *logits.shape[dim + 1 :]), int64)


def _categorical(torch: Any, key: Any, logits: Any, dim: int) -> Any:
    wide = logits if logits.dtype == torch.float64 else logits.float()
    return (wide + _gumbel(torch, key, tuple(logits.shape), wide.dtype)).argmax(dim)


def _categorical_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    key, logits = args
    wide = logits.cast(wide_dtype(logits.dtype))
    return argmax(wide + _gumbel_of(key, wide.shape, wide.dtype), dim=attrs["dim"])


categorical: Final = Op(
    name="categorical",
    doc="Positions along `dim`, each drawn with a chance that is the softmax of `logits` there.",
    params=(operand("key"), operand("logits"), attribute("dim", -1, kinds.axis)),
    type_rule=_categorical_type,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_categorical, is_fresh=True, fused=MadeOf(_categorical_code)),
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
