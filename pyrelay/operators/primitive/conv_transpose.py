"""The transpose of a convolution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim
from ...ir.op import (
    Expansion,
    Hidden,
    HiddenKind,
    Init,
    Layouts,
    Library,
    Op,
    Precision,
    Promotion,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import expect, parameter_dtype, with_rank
from ...ir.types import TensorType, Type
from ..builder import Value, result_shape
from ..shared.convolving import batched, check_channels, conv_bias, image_type, kernel_size
from ..shared.operands import is_given
from .conv import conv_input_grad


def _transposed_type(call: RuleCall) -> Type:
    source, weight = image_type(call, 2), with_rank(call, 1, 4)
    groups, kernel = call.attrs["groups"], weight.shape[2:]
    check_channels(call, source.shape[-3], weight.shape[0])
    out = weight.shape[1] * groups
    if call.given(2):
        expect(
            call,
            2,
            TensorType((out,), source.dtype),
            f"`{call.op.name}` takes one bias per channel",
        )
    for more, stride in zip(call.attrs["output_padding"], call.attrs["stride"], strict=True):
        both = isinstance(more, int) and isinstance(stride, int)
        if both and more >= stride:
            call.clash(f"`{call.op.name}` takes an output_padding below its stride {stride}")
    counts = [
        (size - 1) * s - Dim.of(p) * 2 + (k - 1) * d + more + 1
        for size, k, s, p, d, more in zip(
            source.shape[-2:],
            kernel,
            *(call.attrs[n] for n in ("stride", "padding", "dilation", "output_padding")),
            strict=True,
        )
    ]
    return TensorType((*source.shape[:-3], out, *counts), source.dtype)


def _transposed_weight(call: RuleCall) -> TensorType:
    channels = image_type(call, 2).shape[-3]
    out, groups = call.attrs["out_channels"], call.attrs["groups"]
    kernel = kernel_size(call, 2)
    return TensorType((channels, Dim.of(out) // groups, *kernel), parameter_dtype(call))


def _transposed_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, weight, bias = args
    image = batched(x, 4)
    size = result_shape(conv_transpose2d, (image, weight, None), attrs)
    window = {k: attrs[k] for k in ("stride", "padding", "dilation", "groups")}
    found = conv_input_grad(image, weight, input_size=size, **window)
    if is_given(bias):
        found = found + bias.reshape(bias.shape[0], 1, 1)
    return found.reshape(*found.shape[found.rank - x.rank :])


def _conv_transpose2d(torch: Any, x: Any, weight: Any, bias: Any, *attrs: Any) -> Any:
    return torch.nn.functional.conv_transpose2d(x, weight, bias, *attrs)


def _transposed_samples() -> Iterable[Sample]:
    image, weight, bias = TensorSpec((2, 4, 3, 3)), TensorSpec((4, 3, 3, 2)), TensorSpec((3,))
    yield Sample((image, weight, bias))
    yield Sample((image, weight, None), {"stride": 2, "padding": 1, "output_padding": 1})
    yield Sample((image, weight, bias), {"stride": (2, 1), "dilation": (1, 2)})
    yield Sample((image, TensorSpec((4, 2, 2, 2)), None), {"groups": 2})
    yield Sample((TensorSpec((4, 3, 3)), weight, bias))
    yield Sample((TensorSpec((0, 4, 3, 3)), weight, bias))
    yield Sample((TensorSpec((2, 4, 3, 3), contiguous=False), weight, None))


conv_transpose2d: Final = Op(
    name="conv_transpose2d",
    doc="The transpose of `conv2d`; the weight is (in, out / groups, kH, kW).",
    params=(
        operand("input", promote=True),
        operand("weight", promote=True),
        optional("bias"),
        attribute("stride", 1, kinds.at_least(1, kinds.pair)),
        attribute("padding", 0, kinds.at_least(0, kinds.pair)),
        attribute("output_padding", 0, kinds.at_least(0, kinds.pair)),
        attribute("groups", 1, kinds.at_least(1, kinds.size)),
        attribute("dilation", 1, kinds.at_least(1, kinds.pair)),
    ),
    promotion=Promotion.COMMON,
    type_rule=_transposed_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    precision=Precision.NARROW,
    layouts=Layouts.IMAGES,
    lowering=Library(_conv_transpose2d),
    grad=Expansion(_transposed_code),
    hidden=(
        Hidden("weight", HiddenKind.PARAMETER, Init.FAN_IN, _transposed_weight),
        Hidden("bias", HiddenKind.PARAMETER, Init.ZEROS, conv_bias, only_if="bias"),
    ),
    hyper=(
        attribute("out_channels", convert=kinds.size),
        attribute("kernel_size", convert=kinds.at_least(1, kinds.pair)),
        attribute("bias", True, kinds.flag),
    ),
    torch_name="nn.functional.conv_transpose2d",
    samples=_transposed_samples,
)
