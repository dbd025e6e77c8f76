"""Softmax and its logarithm along a dim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Library,
    MadeOf,
    Op,
    Promotion,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.types import DType, float64
from ..primitive.derivatives import log_softmax_grad, softmax_grad
from ..primitive.extrema import peak
from ..primitive.math import exp, log
from ..shared.operands import as_tensor
from ..shared.precision import wide_dtype
from ..shared.reducing import along_dim, float_dtype
from ..shared.samples import filled

if TYPE_CHECKING:
    from ..builder import Value


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


def _in_dtype(function: str) -> Callable[..., Any]:
    """Return the body that calls a method of tensors; without a dtype, which is a keyword less."""

    def body(torch: Any, x: Any, dim: int, dtype: Any) -> Any:
        method = getattr(as_tensor(torch, x), function)
        return method(dim) if dtype is None else method(dim, dtype=dtype)

    return body


def shifted(x: Value, dims: tuple[int, ...]) -> Value:
    """Return elements less the largest along dims, so that no exponential overflows."""
    return x - peak(x, dim=dims, keepdim=True)


def _operand(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> tuple[Value, DType]:
    """Return the operand in the precision to compute in, and the dtype of the result."""
    dtype = attrs["dtype"] or args[0].dtype
    return args[0].cast(wide_dtype(dtype)), dtype


def _softmax_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, dtype = _operand(args, attrs)
    dims = (attrs["dim"],)
    powers = exp(shifted(x, dims))
    return (powers / powers.sum(dims, keepdim=True)).cast(dtype)


def _log_softmax_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, dtype = _operand(args, attrs)
    dims = (attrs["dim"],)
    inner = shifted(x, dims)
    return (inner - log(exp(inner).sum(dims, keepdim=True))).cast(dtype)


_PARAMS: Final = (
    operand("input", promote=True),
    attribute("dim", convert=kinds.axis),
    attribute("dtype", None, kinds.optional(kinds.dtype)),
)

softmax: Final = Op(
    name="softmax",
    doc="Exponentials of elements over their sum along `dim`.",
    params=_PARAMS,
    promotion=Promotion.FLOAT,
    type_rule=along_dim(float_dtype),
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(_in_dtype("softmax"), is_fresh=True, fused=MadeOf(_softmax_code)),
    grad=lambda p: (softmax_grad(p.g, p.out, dim=p.attrs["dim"]).cast(p.args[0].dtype),),
    samples=_softmax_samples,
)


log_softmax: Final = Op(
    name="log_softmax",
    doc="Logarithm of `softmax`, without overflow.",
    params=_PARAMS,
    promotion=Promotion.FLOAT,
    type_rule=along_dim(float_dtype),
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(_in_dtype("log_softmax"), is_fresh=True, fused=MadeOf(_log_softmax_code)),
    grad=lambda p: (log_softmax_grad(p.g, p.out, dim=p.attrs["dim"]).cast(p.args[0].dtype),),
    samples=_softmax_samples,
)
