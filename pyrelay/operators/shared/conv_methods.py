"""Ways to convolve on a CPU besides torch's own choice, which is oneDNN with images as they come.

*unfold* writes the elements under each window side by side and multiplies matrices (Chellapilla,
Puri and Simard, "High performance convolutional neural networks for document processing", 2006):
it wins for small batches and for channels that do not fill vectors. *channels_last* brings the
channels of an element side by side before oneDNN is called, and back afterwards: it wins for large
batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...ir.op import Method
from ...ir.types import TensorType, Type, float32
from .convolving import padded, those_wanted


def _are_floats(types: Sequence[Type], rank: int, count: int) -> bool:
    found = (t for t in types[:count] if isinstance(t, TensorType))
    return all(t.rank == rank and t.dtype == float32 for t in found)


def _is_plain(attrs: Mapping[str, Any]) -> bool:
    """Return whether the windows are without holes, and see all channels."""
    return attrs["groups"] == 1 and all(d == 1 for d in attrs["dilation"])


def _columns(x: tuple[int, ...], weight: tuple[int, ...], *_: Any) -> int:
    """Return how many elements the windows of an image have, at most."""
    found = 1
    for size in (*x[:1], *x[2:], *weight[1:]):
        found *= size
    return found


def _unfold(
    torch: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, _: int
) -> Any:
    x, padding = padded(torch, x, weight, padding, dilation)
    kernel = (weight.shape[2], weight.shape[3])
    return torch.ops.aten._slow_conv2d_forward(x, weight, kernel, bias, stride, padding)  # noqa: SLF001


def _unfold_rows(
    torch: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, _: int
) -> Any:
    x, padding = padded(torch, x, weight, padding, dilation)
    image, kernels = x.unsqueeze(2), weight.unsqueeze(2)
    found = torch.ops.aten._slow_conv2d_forward(  # noqa: SLF001
        image, kernels, (1, weight.shape[2]), bias, (1, *stride), (0, *padding)
    )
    return found.squeeze(2)


def _unfold_backward(
    torch: Any, g: Any, x: Any, weight: Any, wanted: tuple[bool, ...], *attrs: Any
) -> Any:
    # One number stands for both dims.
    stride, padding = (v if len(v) == 2 else (*v, *v) for v in attrs[:2])
    kernel = (weight.shape[2], weight.shape[3])
    # An image whose rows do not lie side by side gives a wrong gradient of the weight.
    found = torch.ops.aten._slow_conv2d_backward.output_mask(  # noqa: SLF001
        g, x.contiguous(), weight, kernel, stride, padding, wanted
    )
    return those_wanted(found, wanted)


def _last(torch: Any, x: Any) -> Any:
    return x.contiguous(memory_format=torch.channels_last)


def _last_weight(weight: Any) -> Any:
    """Return a weight whose strides ask for channels last where those of the image cannot: with one
    channel both orders are the same."""
    out, channels, height, width = (weight.shape[i] for i in range(4))
    if channels != 1:
        return weight
    return weight.contiguous().as_strided((out, 1, height, width), (height * width, 1, width, 1))


def _channels_last(
    torch: Any,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Any:
    x, padding = padded(torch, x, weight, padding, dilation)
    image, kernels = _last(torch, x), _last_weight(weight)
    found = torch.nn.functional.conv2d(image, kernels, bias, stride, padding, dilation, groups)
    return found.contiguous()


def _channels_last_backward(
    torch: Any, g: Any, x: Any, weight: Any, wanted: tuple[bool, ...], *attrs: Any
) -> Any:
    stride, padding, dilation, groups = attrs
    g, x, kernels, out = _last(torch, g), _last(torch, x), _last_weight(weight), weight.shape[0]
    found = torch.ops.aten.convolution_backward(
        g, x, kernels, (out,), stride, padding, dilation, False, (0, 0), groups, wanted
    )
    return tuple(found[i].contiguous() for i in range(3) if wanted[i])


IMAGES: Final = (
    Method(
        "unfold",
        _unfold,
        lambda types, attrs: _are_floats(types, 4, 2) and _is_plain(attrs),
        _columns,
    ),
    Method("channels_last", _channels_last, lambda types, _: _are_floats(types, 4, 2)),
)
"""The ways to do `conv2d`."""

ROWS: Final = (
    Method(
        "unfold",
        _unfold_rows,
        lambda types, attrs: _are_floats(types, 3, 2) and _is_plain(attrs),
        _columns,
    ),
)
"""The ways to do `conv1d`."""

BACKWARD: Final = (
    Method(
        "unfold",
        _unfold_backward,
        lambda types, attrs: _are_floats(types, 4, 3) and _is_plain(attrs),
        lambda g, x, weight, *_: _columns(g, weight),
    ),
    Method("channels_last", _channels_last_backward, lambda types, _: _are_floats(types, 4, 3)),
)
"""The ways to do `conv_backward`."""
