"""Measures of elements along dims: spread, norm, and the logarithm of a sum of exponentials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Library,
    MadeOf,
    Op,
    Promotion,
    Pullback,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import drop_axes
from ...ir.types import float64
from ..primitive.arithmetic import abs_, maximum, sign
from ..primitive.compare import cast, equal, isfinite, not_equal, where
from ..primitive.extrema import amax, amin, peak
from ..primitive.math import exp, log, sqrt
from ..primitive.reduce import mean
from ..shared.operands import on_tensor
from ..shared.precision import wide_dtype, widened
from ..shared.reducing import (
    OVER_DIMS,
    count,
    float_dtype,
    float_reductions,
    kept,
    reduced_axes,
    reduced_dims,
    reduced_type,
)
from ..shared.samples import filled

if TYPE_CHECKING:
    from ..builder import Value


def _variance(x: Value, attrs: Mapping[str, Any]) -> Value:
    """Return the variance in two passes: deviations from the mean, and the mean of their
    squares."""
    dims, wide = attrs["dim"], widened(x)
    deviation = wide - mean(wide, dim=dims, keepdim=True)
    squares = (deviation * deviation).sum(dims, keepdim=attrs["keepdim"])
    freedom = _freedom(wide, attrs)
    # Of too few elements torch gives infinity or not-a-number, never a negative number.
    if isinstance(freedom, int | float):
        return squares / max(freedom, 0.0)
    return squares / maximum(freedom.cast(wide.dtype), 0.0)


def _logsumexp_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, dims = widened(args[0]), attrs["dim"]
    top = peak(x, dim=dims, keepdim=True)
    shift = where(isfinite(top), top, 0.0)  # infinity less itself would be not-a-number
    total = log(exp(x - shift).sum(dims, keepdim=True)) + shift
    if not attrs["keepdim"]:
        total = total.reshape(*drop_axes(x.shape, reduced_axes(dims, x.rank), keepdim=False))
    return total.cast(args[0].dtype)


def _norm_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    order, dims, keepdim = attrs["p"], attrs["dim"], attrs["keepdim"]
    dtype = attrs["dtype"] or args[0].dtype
    x = args[0].cast(wide_dtype(dtype))
    if math.isinf(order):
        chosen = amax if order > 0 else amin
        return chosen(abs_(x), dim=dims, keepdim=keepdim).cast(dtype)
    if order == 0.0:
        return cast(not_equal(x, 0.0), dtype=x.dtype).sum(dims, keepdim=keepdim).cast(dtype)
    if order == 2.0:
        return sqrt((x * x).sum(dims, keepdim=keepdim)).cast(dtype)
    size = abs_(x)
    if order == 1.0:
        return size.sum(dims, keepdim=keepdim).cast(dtype)
    return ((size**order).sum(dims, keepdim=keepdim) ** (1.0 / order)).cast(dtype)


def _freedom(x: Value, attrs: Mapping[str, Any]) -> Value | float:
    """Return the divisor of the sum of squared deviations, which may be 0 or negative."""
    total, correction = count(x, attrs["dim"]), _correction(attrs)
    if total.constant is not None:
        return float(total.constant - correction)
    return x.builder.size(total) - correction


def _correction(attrs: Mapping[str, Any]) -> float:
    unbiased = attrs["unbiased"]
    return attrs["correction"] if unbiased is None else int(unbiased)


def _squared_deviation_slope(p: Pullback, g: Value) -> Value:
    """Return the cotangent through a variance, for the cotangent `g` of the variance."""
    x, dims = p.args[0], p.attrs["dim"]
    deviation = x - mean(x, dim=dims, keepdim=True)
    return (2.0 * kept(g, x, dims)) / _freedom(x, p.attrs) * deviation


def _var(torch: Any, x: Any, dim: Any, correction: float, keepdim: bool, unbiased: Any) -> Any:
    correction = correction if unbiased is None else int(unbiased)
    return torch.var(x, dim, correction=correction, keepdim=keepdim)


# Torch gives a warning and not-a-number for what is spread over one element or none.
_TOO_FEW: Final = ((TensorSpec(()),), (TensorSpec((1, 3)),), (TensorSpec((0, 3)),))


def _spread_samples() -> Iterable[Sample]:
    yield from (s for s in float_reductions() if s.operands not in _TOO_FEW)
    yield Sample((TensorSpec((3, 4)),), {"dim": 1, "correction": 0})
    yield Sample((TensorSpec((3, 4)),), {"dim": 1, "correction": 1.5})
    yield Sample((TensorSpec((3, 4)),), {"dim": 0, "unbiased": False})
    yield Sample((TensorSpec((3, 4)),), {"unbiased": True, "keepdim": True})
    yield Sample((TensorSpec((3, 4), "int64", -5, 5),), {"dim": 1})
    yield Sample((TensorSpec(()),), {"correction": 0}, smooth=False)


_SPREAD: Final = (
    operand("input", promote=True),
    attribute("dim", None, reduced_dims),
    attribute("correction", 1, kinds.number),
    attribute("keepdim", False, kinds.flag),
    attribute("unbiased", None, kinds.optional(kinds.flag)),
)

var: Final = Op(
    name="var",
    doc="Variance of elements: squared deviations over their number less `correction`.",
    params=_SPREAD,
    promotion=Promotion.FLOAT,
    type_rule=reduced_type(float_dtype),
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=Library(
        on_tensor(_var),
        fused=MadeOf(lambda args, attrs: _variance(args[0], attrs).cast(args[0].dtype)),
    ),
    grad=lambda p: (_squared_deviation_slope(p, p.g),),
    samples=_spread_samples,
)


def _std_grad(p: Pullback) -> Sequence[Value | None]:
    still = equal(p.out, 0.0)
    to_variance = where(still, 0.0, p.g / (2.0 * where(still, 1.0, p.out)))
    return (_squared_deviation_slope(p, to_variance),)


std: Final = Op(
    name="std",
    doc="Standard deviation of elements, the root of `var`; its derivative at 0 is 0.",
    params=_SPREAD,
    promotion=Promotion.FLOAT,
    type_rule=reduced_type(float_dtype),
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=Library(
        on_tensor(lambda torch, x, *attrs: _var(torch, x, *attrs).sqrt()),
        fused=MadeOf(lambda args, attrs: sqrt(_variance(args[0], attrs)).cast(args[0].dtype)),
    ),
    grad=_std_grad,
    samples=lambda: (*_spread_samples(), Sample((filled(1.0, 3, 2),), smooth=False)),
)


def _logsumexp_grad(p: Pullback) -> Sequence[Value | None]:
    x, dims = p.args[0], p.attrs["dim"]
    return (kept(p.g, x, dims) * exp(x - kept(p.out, x, dims)),)


logsumexp: Final = Op(
    name="logsumexp",
    doc="Logarithm of the sum of the exponentials of elements, without overflow.",
    params=(
        operand("input", promote=True),
        attribute("dim", convert=reduced_dims),
        attribute("keepdim", False, kinds.flag),
    ),
    promotion=Promotion.FLOAT,
    type_rule=reduced_type(float_dtype),
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=Library(
        on_tensor(lambda torch, x, dim, keepdim: x.logsumexp(dim, keepdim)),
        fused=MadeOf(_logsumexp_code),
    ),
    grad=_logsumexp_grad,
    samples=lambda: (
        *(s for s in float_reductions() if s.attrs.get("dim") is not None),
        Sample((TensorSpec((3, 4), "int64", -5, 5),), {"dim": 0}),
        Sample((filled(500.0, 3),), {"dim": 0}),
    ),
)


def _order(value: Any) -> float:
    return 2.0 if value == "fro" else kinds.real(value)


def _largest_slope(x: Value, out: Value, dims: tuple[int, ...] | None) -> Value:
    """Return the slope of the largest or smallest size, which those of equal size share."""
    reached = equal(abs_(x), out)
    sharing = cast(reached, dtype=x.dtype).sum(reduced_axes(dims, x.rank), keepdim=True)
    return where(reached, sign(x), 0.0) / sharing


def _norm_slope(order: float, x: Value, out: Value, dims: tuple[int, ...] | None) -> Value:
    """Return the derivative of the norm by each element, 0 where element or norm is 0."""
    if math.isinf(order):
        return _largest_slope(x, out, dims)
    if order == 1.0:
        return sign(x)
    still = equal(out, 0.0)
    safe = where(still, 1.0, out)
    if order == 2.0:
        return where(still, 0.0, x / safe)
    # Sizes are kept away from 0, where a power of them has no derivative.
    gone = equal(x, 0.0)
    size = where(gone, 1.0, abs_(x))
    return where(gone, 0.0, sign(x) * (size / safe) ** (order - 1.0))


def _norm_grad(p: Pullback) -> Sequence[Value | None]:
    order, dims = p.attrs["p"], p.attrs["dim"]
    if order == 0.0:
        return (None,)
    x, out = p.args[0].cast(p.out.dtype), kept(p.out, p.args[0], dims)
    slope = _norm_slope(order, x, out, dims)
    return ((kept(p.g, x, dims) * slope).cast(p.args[0].dtype),)


def _norm(torch: Any, x: Any, p: float, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return torch.linalg.vector_norm(x, p, dim, keepdim, dtype=dtype)


def _norm_samples() -> Iterable[Sample]:
    yield from float_reductions()
    for order in (0.0, 0.5, 1, 1.5, 2, 3, math.inf, -math.inf):
        yield Sample((TensorSpec((3, 4)),), {"p": order, "dim": 1})
        yield Sample((TensorSpec((3, 4)),), {"p": order, "dim": (0, 1), "keepdim": True})
        yield Sample((filled(0.0, 3),), {"p": order}, smooth=False)
        yield Sample((filled(-1.0, 3),), {"p": order}, smooth=False)
    yield Sample((TensorSpec((3, 4), "int64", -5, 5),), {"dim": 0})
    yield Sample((TensorSpec((3, 4)),), {"p": 1, "dim": 0, "dtype": float64})


norm: Final = Op(
    name="norm",
    doc="The `p`-norm of elements as a vector; its derivative at 0 is 0.",
    params=(
        operand("input", promote=True),
        attribute("p", "fro", _order),
        *OVER_DIMS,
        attribute("dtype", None, kinds.optional(kinds.dtype)),
    ),
    promotion=Promotion.FLOAT,
    type_rule=reduced_type(float_dtype),
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=Library(on_tensor(_norm), fused=MadeOf(_norm_code)),
    grad=_norm_grad,
    samples=_norm_samples,
)
