"""Normalisation with its statistics, and its derivative as one kernel.

A derivative replaces `layer_norm`, and `batch_norm` in training, by the operators here, which also
give the mean and the reciprocal deviation, so that the backward kernel need not compute them again.
The kernel's own derivative is that of the same formula written out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE, product
from ...ir.op import (
    Expansion,
    Library,
    MadeOf,
    Op,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import floating
from ...ir.types import UNIT, DType, TensorType, TupleType, Type, float32
from ..primitive import math, reduce
from ..shared.operands import is_given
from ..shared.precision import widened

if TYPE_CHECKING:
    from ..builder import Value


def along_channels(vector: Value, rank: int) -> Value:
    """Return one number per channel in a shape that broadcasts with the tensor (dim 1)."""
    return vector.reshape(vector.shape[0], *(ONE,) * (rank - 2))


def mean_over(x: Value, dims: Sequence[int]) -> Value:
    """Return the mean over dims, which stay as 1."""
    return reduce.mean(x, dim=tuple(dims), keepdim=True)


def through_standard(h: Value, standard: Value, factor: Value, dims: Sequence[int]) -> Value:
    """Return the cotangent of what was standardised by `factor`, from that of the result."""
    return factor * (h - mean_over(h, dims) - standard * mean_over(h * standard, dims))


def _wide(source: TensorType) -> TensorType:
    """Return the type in which statistics are kept: half types are too coarse."""
    dtype = source.dtype
    half = isinstance(dtype, DType) and dtype.bits < 32
    return TensorType(source.shape, float32) if half else source


def _widened(torch: Any, *values: Any) -> list[Any]:
    half = (torch.float16, torch.bfloat16)
    return [v if v is None or v.dtype not in half else v.float() for v in values]


def _of_statistics(p: Pullback, mean: Value, factor: Value, count: Value) -> Value | None:
    """Return the share of the cotangents of the statistics in that of the input, if they have
    any."""
    x, builder = p.args[0], p.g.builder
    if builder.is_zero(p.g[1]) and builder.is_zero(p.g[2]):
        return None
    by_mean = p.g[1].reshape(*mean.shape) / count
    by_factor = p.g[2].reshape(*mean.shape) * (factor**3.0) / count
    return (by_mean - by_factor * (x - mean)).cast(x.dtype)


def _total(first: Value, second: Value | None) -> Value:
    return first if second is None else first + second


def _normal_dims(rank: int, shape: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dims before the normalised ones, and those."""
    first = rank - len(shape)
    return tuple(range(first)), tuple(range(first, rank))


def _layer_type(call: RuleCall) -> Type:
    source, shape = floating(call, 0), call.attrs["normalized_shape"]
    lead = source.shape[: source.rank - len(shape)]
    each = _wide(TensorType((*lead, *(ONE,) * len(shape)), source.dtype))
    return TupleType((source, each, each))


def _layer(
    torch: Any, x: Any, weight: Any, bias: Any, shape: tuple[int, ...], eps: float
) -> tuple[Any, Any, Any]:
    wide = _widened(torch, x, weight, bias)
    out, mean, factor = torch.native_layer_norm(wide[0], shape, wide[1], wide[2], eps)
    return out.to(x.dtype), mean, factor


def normal(x: Value, dims: Sequence[int], eps: float) -> tuple[Value, Value, Value, Value]:
    """Return a tensor normalised along dims, in two passes; the mean, the reciprocal deviation and
    the mean square of what is left when the mean is taken off."""
    mean = mean_over(x, dims)
    centred = x - mean
    square = mean_over(centred * centred, dims)
    factor = math.rsqrt(square + eps)
    return centred * factor, mean, factor, square


def scaled(x: Value, weight: Value | None, bias: Value | None) -> Value:
    """Return a tensor times a weight and plus a bias, as far as they are there."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def given(value: Value) -> Value | None:
    """Return an optional operand in the precision to compute in."""
    return widened(value) if is_given(value) else None


def _layer_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, weight, bias = args
    _, dims = _normal_dims(x.rank, attrs["normalized_shape"])
    standard, mean, factor, _ = normal(widened(x), dims, attrs["eps"])
    out = scaled(standard, given(weight), given(bias)).cast(x.dtype)
    return x.builder.tuple((out, mean, factor))


def _layer_grad(p: Pullback) -> tuple[Value | None, ...]:
    x, weight, bias = p.args
    shape, g = p.attrs["normalized_shape"], p.g[0]
    lead, _ = _normal_dims(x.rank, shape)
    mean, factor = p.out[1], p.out[2]
    parts = layer_norm_backward(g, x, mean, factor, weight, normalized_shape=shape)
    count = x.builder.size(product(shape))
    to_x = _total(parts[0], _of_statistics(p, mean, factor, count))
    to_bias = (g.sum(lead) if lead else g) if is_given(bias) else None
    return to_x, parts[1] if is_given(weight) else None, to_bias


_ROW: Final = TensorSpec((3,))


layer_norm_with_statistics: Final = Op(
    name="layer_norm_with_statistics",
    doc="What `layer_norm` gives, the means, and the reciprocal deviations.",
    params=(
        operand("input"),
        attribute("normalized_shape", convert=kinds.shape),
        optional("weight"),
        optional("bias"),
        attribute("eps", 1e-5, kinds.real),
    ),
    type_rule=_layer_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Library(_layer, is_fresh=True, fused=MadeOf(_layer_code)),
    grad=_layer_grad,
    samples=lambda: (
        Sample((TensorSpec((4, 3)), _ROW, _ROW), {"normalized_shape": (3,)}),
        Sample((TensorSpec((4, 3)), None, _ROW), {"normalized_shape": (3,), "eps": 0.1}),
        Sample((TensorSpec((2, 4, 3)), None, None), {"normalized_shape": (4, 3)}),
        Sample((TensorSpec((3,)), _ROW, None), {"normalized_shape": (3,)}),
        Sample((TensorSpec((0, 3)), _ROW, _ROW), {"normalized_shape": (3,)}),
        Sample((TensorSpec((4, 3), contiguous=False), _ROW, _ROW), {"normalized_shape": (3,)}),
    ),
)


def _backward_type(call: RuleCall) -> Type:
    source = floating(call, 1)
    return TupleType((source, call.tensor(4) if call.given(4) else UNIT))


def _layer_backward(
    torch: Any, g: Any, x: Any, mean: Any, factor: Any, weight: Any, shape: tuple[int, ...]
) -> tuple[Any, Any]:
    mask = (True, weight is not None, False)
    wide = _widened(torch, g, x, weight)
    to_x, to_weight, _ = torch.ops.aten.native_layer_norm_backward(
        wide[0].contiguous(), wide[1].contiguous(), shape, mean, factor, wide[2], None, mask
    )
    return to_x.to(x.dtype), () if weight is None else to_weight.to(weight.dtype)


def _layer_backward_formula(args: tuple[Value, ...], attrs: Any) -> Value:
    _, x, mean, factor, weight = args
    g = widened(args[0])
    lead, dims = _normal_dims(x.rank, attrs["normalized_shape"])
    standard = (widened(x) - mean) * factor
    h = scaled(g, given(weight), None)
    to_x = through_standard(h, standard, factor, dims).cast(x.dtype)
    if not is_given(weight):
        return g.builder.tuple((to_x, g.builder.unit()))
    spread = g * standard
    to_weight = spread.sum(lead) if lead else spread
    return g.builder.tuple((to_x, to_weight.cast(weight.dtype)))


layer_norm_backward: Final = Op(
    name="layer_norm_backward",
    doc="The cotangents of the input and the weight of `layer_norm`.",
    params=(
        operand("grad"),
        operand("input"),
        operand("mean"),
        operand("rstd"),
        optional("weight"),
        attribute("normalized_shape", convert=kinds.shape),
    ),
    type_rule=_backward_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Library(_layer_backward, is_fresh=True, fused=MadeOf(_layer_backward_formula)),
    grad=Expansion(_layer_backward_formula),
    samples=lambda: (
        Sample(
            (*(TensorSpec((4, 3)),) * 2, *(TensorSpec((4, 1)),) * 2, _ROW),
            {"normalized_shape": (3,)},
        ),
        Sample(
            (*(TensorSpec((2, 4, 3)),) * 2, *(TensorSpec((2, 1, 1)),) * 2, None),
            {"normalized_shape": (4, 3)},
        ),
        Sample(
            (*(TensorSpec((4, 3), contiguous=False),) * 2, *(TensorSpec((4, 1)),) * 2, _ROW),
            {"normalized_shape": (3,)},
        ),
        Sample(
            (*(TensorSpec((0, 3)),) * 2, *(TensorSpec((0, 1)),) * 2, _ROW),
            {"normalized_shape": (3,)},
        ),
    ),
)


def _batch_type(call: RuleCall) -> Type:
    source = floating(call, 0)
    each = _wide(TensorType((source.shape[1],), source.dtype))
    return TupleType((source, each, each, each))


def _batch(torch: Any, x: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, ...]:
    if x.numel() == x.shape[1] > 0:
        raise ValueError(f"one value per channel has no variance: the shape is {tuple(x.shape)}")
    wide = _widened(torch, x, weight, bias)
    # With momentum 1 the new running statistics are those of the batch.
    running, var = wide[0].new_zeros(x.shape[1]), wide[0].new_zeros(x.shape[1])
    out, mean, factor = torch.native_batch_norm(*wide, running, var, True, 1.0, eps)
    return out.to(x.dtype), mean, factor, var


def _batch_dims(x: Value) -> tuple[int, ...]:
    return tuple(d for d in range(x.rank) if d != 1)


def _batch_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value | None:
    x, weight, bias = args
    dims, channels = _batch_dims(x), x.shape[1]
    count = product(tuple(x.shape[d] for d in dims))
    if gcd(*(factor for _, factor in count.terms)) == 1:
        return None  # it may be 1, which `_batch` refuses
    standard, mean, factor, square = normal(widened(x), dims, attrs["eps"])
    factors = [None if v is None else along_channels(v, x.rank) for v in map(given, (weight, bias))]
    out = scaled(standard, *factors).cast(x.dtype)
    whole, rest = (x.builder.size(n).cast(square.dtype) for n in (count, count - 1))
    statistics = (mean, factor, square * (whole / rest))
    return x.builder.tuple((out, *(s.reshape(channels) for s in statistics)))


def _batch_grad(p: Pullback) -> tuple[Value | None, ...]:
    x, weight, bias = p.args
    g, builder, dims = p.g[0], p.g.builder, _batch_dims(x)
    mean, factor = along_channels(p.out[1], x.rank), along_channels(p.out[2], x.rank)
    parts = batch_norm_backward(g, x, p.out[1], p.out[2], weight, eps=p.attrs["eps"])
    count = product(tuple(x.shape[d] for d in dims))
    to_x = _total(parts[0], _of_statistics(p, mean, factor, builder.size(count)))
    if not builder.is_zero(p.g[3]):
        by_var = along_channels(p.g[3], x.rank) * 2.0 / builder.size(count - 1)
        to_x = to_x + (by_var * (x - mean)).cast(x.dtype)
    to_bias = g.sum(dims) if is_given(bias) else None
    return to_x, parts[1] if is_given(weight) else None, to_bias


batch_norm_with_statistics: Final = Op(
    name="batch_norm_with_statistics",
    doc="What `batch_norm` gives in training, the means, the reciprocal deviations, and the "
    "unbiased variances.",
    params=(
        operand("input"),
        optional("weight"),
        optional("bias"),
        attribute("eps", 1e-5, kinds.real),
    ),
    type_rule=_batch_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Library(_batch, is_fresh=True, fused=MadeOf(_batch_code)),
    grad=_batch_grad,
    samples=lambda: (
        Sample((TensorSpec((4, 3)), _ROW, _ROW)),
        Sample((TensorSpec((2, 3, 4, 5)), None, None), {"eps": 0.1}),
        Sample((TensorSpec((2, 3, 5)), _ROW, None)),
        Sample((TensorSpec((4, 3, 5), contiguous=False), None, _ROW)),
    ),
)


def _batch_backward(
    torch: Any, g: Any, x: Any, mean: Any, factor: Any, weight: Any, eps: float
) -> tuple[Any, Any]:
    mask = (True, weight is not None, False)
    wide = _widened(torch, g, x, weight)
    to_x, to_weight, _ = torch.ops.aten.native_batch_norm_backward(
        wide[0].contiguous(), wide[1].contiguous(), wide[2], None, None, mean, factor, True, eps,
        mask,
    )  # fmt: skip
    return to_x.to(x.dtype), () if weight is None else to_weight.to(weight.dtype)


def _batch_backward_formula(args: tuple[Value, ...], _: Any) -> Value:
    _, x, mean, factor, weight = args
    g, dims = widened(args[0]), _batch_dims(x)
    factor = along_channels(factor, x.rank)
    standard = (widened(x) - along_channels(mean, x.rank)) * factor
    h = g * along_channels(widened(weight), x.rank) if is_given(weight) else g
    to_x = through_standard(h, standard, factor, dims).cast(x.dtype)
    if not is_given(weight):
        return g.builder.tuple((to_x, g.builder.unit()))
    return g.builder.tuple((to_x, (g * standard).sum(dims).cast(weight.dtype)))


batch_norm_backward: Final = Op(
    name="batch_norm_backward",
    doc="The cotangents of the input and the weight of `batch_norm` in training.",
    params=(
        operand("grad"),
        operand("input"),
        operand("mean"),
        operand("rstd"),
        optional("weight"),
        attribute("eps", 1e-5, kinds.real),
    ),
    type_rule=_backward_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Library(_batch_backward, is_fresh=True, fused=MadeOf(_batch_backward_formula)),
    grad=Expansion(_batch_backward_formula),
    samples=lambda: (
        Sample((*(TensorSpec((4, 3)),) * 2, *(TensorSpec((3,)),) * 2, _ROW)),
        Sample((*(TensorSpec((2, 3, 4, 5)),) * 2, *(TensorSpec((3,)),) * 2, None)),
        Sample((*(TensorSpec((4, 3, 5), contiguous=False),) * 2, *(TensorSpec((3,)),) * 2, _ROW)),
    ),
)
