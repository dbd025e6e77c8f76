"""Softmax and its logarithm along a dim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ..op import (
    Effect,
    Library,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ..rules import axis
from ..types import TensorType, Type, float64
from .math import exp
from .operands import on_tensor
from .reducing import float_dtype, one_dim
from .samples import filled

if TYPE_CHECKING:
    from ..build import Value


def _softmax_type(call: RuleCall) -> Type:
    ty = call.tensor(0)
    axis(call, call.attrs["dim"], ty.rank)
    return TensorType(ty.shape, float_dtype(call, ty.dtype))


def _softmax_samples() -> Iterable[Sample]:
    yield Sample((TensorSpec((3, 4)),), {"dim": -1})
    yield Sample((TensorSpec((2, 3, 4)),), {"dim": 1})
    yield Sample((TensorSpec((5,)),), {"dim": 0})
    yield Sample((TensorSpec((1,)),), {"dim": 0})
    yield Sample((TensorSpec((4, 3), contiguous=False),), {"dim": 1})
    yield Sample((TensorSpec((0, 3)),), {"dim": 1})
    yield Sample((filled(500.0, 2, 3),), {"dim": 1})
    yield Sample((TensorSpec((3, 4), "int64", -5, 5),), {"dim": 1})
    yield Sample((TensorSpec((3, 4)),), {"dim": 1, "dtype": float64})


def _softmax_grad(p: Pullback) -> Sequence[Value | None]:
    dim = p.attrs["dim"]
    weighted = p.g * p.out
    total = weighted.sum((dim,), keepdim=True)
    return ((weighted - p.out * total).cast(p.args[0].dtype),)


softmax: Final = Op(
    name="softmax",
    doc="Exponentials of elements over their sum along `dim`.",
    params=(
        operand("input", promote=True),
        attribute("dim", convert=one_dim),
        attribute("dtype", None),
    ),
    promotion=Promotion.FLOAT,
    type_rule=_softmax_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(on_tensor(lambda torch, x, dim, dtype: x.softmax(dim, dtype=dtype))),
    grad=_softmax_grad,
    hidden=(),
    hyper=(),
    torch_name="softmax",
    samples=_softmax_samples,
)


def _log_softmax_grad(p: Pullback) -> Sequence[Value | None]:
    total = p.g.sum((p.attrs["dim"],), keepdim=True)
    return ((p.g - exp(p.out) * total).cast(p.args[0].dtype),)


log_softmax: Final = Op(
    name="log_softmax",
    doc="Logarithm of `softmax`, without overflow.",
    params=(
        operand("input", promote=True),
        attribute("dim", convert=one_dim),
        attribute("dtype", None),
    ),
    promotion=Promotion.FLOAT,
    type_rule=_softmax_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(on_tensor(lambda torch, x, dim, dtype: x.log_softmax(dim, dtype=dtype))),
    grad=_log_softmax_grad,
    hidden=(),
    hyper=(),
    torch_name="log_softmax",
    samples=_softmax_samples,
)
