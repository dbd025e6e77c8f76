"""Batching rules of convolutions and pools.

Rows are made one with the batch of images. Where each row has a weight of its own, they are made
one with the channels, in as many groups as there are rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...ir.dims import ONE, Dim
from ...ir.op import Op
from ...ir.types import TensorType, Type
from ...operators.builder import Value
from ...operators.composite.resample import interpolate
from ...operators.primitive.conv import (
    conv2d,
    conv3d,
    conv_backward,
    conv_input_grad,
    conv_weight_grad,
)
from ...operators.primitive.patches import fold, unfold
from ...operators.primitive.pool import (
    adaptive_avg_pool2d,
    adaptive_avg_pool2d_backward,
    avg_pool2d,
    avg_pool2d_backward,
    max_pool2d_backward,
    max_pool2d_with_indices,
)
from ...operators.shared.operands import is_given
from ...operators.tiers import Body
from .rows import RowsCall, Rule, reshaped, rows_type


def _on_batch(rank: int, *sizes: str) -> Rule:
    """Return the rule of an operator on images, of `rank` dims with that of the batch, whose
    attributes `sizes` are shapes of images."""

    def rule(rows: RowsCall) -> Value:
        operands = [rows.folded(i, rank) for i in range(len(rows.operands))]
        attrs = {name: _folded_shape(rows, rows.attrs[name], rank) for name in sizes}
        return reshaped(rows.emit(operands, **attrs), rows_type(rows.ty, True, rows.count))

    return rule


def _folded_shape(rows: RowsCall, shape: tuple[Dim, ...], rank: int) -> tuple[Dim, ...]:
    if len(shape) < rank:
        return (rows.count, *shape)
    return (rows.count * shape[0], *shape[1:])


def _interpolate(rows: RowsCall) -> Value | None:
    return _on_batch(rows.rank())(rows)


def _as_channels(value: Value, count: Dim) -> Value:
    """Return batches of images, one for each row, as one batch whose channels are those of all
    rows, one row behind another."""
    _, batch, channels, *rest = value.shape
    return value.transpose(0, 1).reshape(batch, count * channels, *rest)


def _from_channels(value: Value, count: Dim, wanted: Type) -> Value:
    """Return the inverse of `_as_channels`."""
    assert isinstance(wanted, TensorType)
    batch, channels, *rest = wanted.shape
    return value.reshape(batch, count, channels, *rest).transpose(0, 1)


def _one_behind_another(value: Value) -> Value:
    """Return the weights of all rows as one, their outputs one behind another."""
    return value.reshape(value.shape[0] * value.shape[1], *value.shape[2:])


def _convolution(rows: RowsCall) -> Value:
    """Return a convolution: of one batch of all images if the weight is shared, else in groups."""
    x, weight, bias = rows.operands
    rank = rows.rank(1)
    if not rows.has(1):
        shared = None if rows.has(2) or not is_given(bias) else bias
        folded = rows.emit((rows.folded(0, rank), weight, shared or rows.builder.unit()))
        found = reshaped(folded, rows_type(rows.ty, True, rows.count))
        return _with_bias(rows, found) if rows.has(2) else found
    start = int(rows.has(0))
    images = x if rows.rank(0) == rank else x.unsqueeze(start)
    wanted = TensorType((images.shape[start], *rows.shape[-rank + 1 :]), x.dtype)
    groups = rows.attrs["groups"]
    if rows.has(0) or groups != 1:
        whole = images if rows.has(0) else rows.repeated(images)
        images, groups = _as_channels(whole, rows.count), rows.count * groups
    operands = (images, _one_behind_another(weight), rows.builder.unit())
    found = _from_channels(rows.emit(operands, groups=groups), rows.count, wanted)
    found = found.reshape(rows.count, *rows.shape)
    return _with_bias(rows, found) if is_given(bias) else found


def _with_bias(rows: RowsCall, images: Value) -> Value:
    """Return images with the bias of each channel added."""
    bias, spatial = rows.operands[2], rows.rank(1) - 2
    lead = (rows.count, *(ONE,) * (len(rows.shape) - spatial - 1)) if rows.has(2) else ()
    return images + bias.reshape(*lead, bias.shape[-1], *(ONE,) * spatial)


def _input_grad(rows: RowsCall) -> Value:
    """Return the cotangent of the input: linear in that of the result, as a convolution is."""
    size: tuple[Dim, ...] = tuple(map(Dim.of, rows.attrs["input_size"]))
    if not rows.has(1):
        folded = (rows.count * size[0], *size[1:])
        found = rows.emit((rows.folded(0, rows.rank(0)), rows.operands[1]), input_size=folded)
        return found.reshape(rows.count, *size)
    g = _as_channels(rows.whole(0), rows.count)
    found = rows.emit(
        (g, _one_behind_another(rows.operands[1])),
        input_size=(size[0], rows.count * size[1], *size[2:]),
        groups=rows.count * rows.attrs["groups"],
    )
    return _from_channels(found, rows.count, rows.ty)


def _weight_grad(rows: RowsCall) -> Value:
    """Return the cotangent of the weight for each row, by a convolution in groups: on a CPU faster
    than products of patches."""
    size: tuple[Dim, ...] = tuple(map(Dim.of, rows.attrs["weight_size"]))
    operands = [_as_channels(rows.whole(i), rows.count) for i in (0, 1)]
    found = rows.emit(
        operands,
        weight_size=(rows.count * size[0], *size[1:]),
        groups=rows.count * rows.attrs["groups"],
    )
    return found.reshape(rows.count, *size)


def _backward_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Return the cotangents of a convolution, each by an operator of its own."""
    g, x, weight = args
    to_x, to_weight, to_bias = attrs["wanted"]
    window = {n: attrs[n] for n in ("stride", "padding", "dilation", "groups")}
    found: list[Value] = []
    if to_x:
        found.append(conv_input_grad(g, weight, input_size=x.shape, **window))
    if to_weight:
        found.append(conv_weight_grad(g, x, weight_size=weight.shape, **window))
    if to_bias:
        found.append(g.sum(tuple(d for d in range(g.rank) if d != 1)))
    return g.builder.tuple(found)


RULES: Final[Mapping[Op, Rule]] = {
    conv2d: _convolution,
    conv3d: _convolution,
    conv_input_grad: _input_grad,
    conv_weight_grad: _weight_grad,
    max_pool2d_with_indices: _on_batch(4),
    max_pool2d_backward: _on_batch(4),
    avg_pool2d: _on_batch(4),
    avg_pool2d_backward: _on_batch(4, "input_size"),
    adaptive_avg_pool2d: _on_batch(4),
    adaptive_avg_pool2d_backward: _on_batch(4, "input_size"),
    unfold: _on_batch(4),
    fold: _on_batch(3),
    interpolate: _interpolate,
}

BODIES: Final[Mapping[Op, Body]] = {conv_backward: _backward_code}
"""Equivalent code of one row."""
