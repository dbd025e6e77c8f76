"""Convolutions. The gradients are operators of their own, each the transpose of another, so that
derivatives of any order stay within the family."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim
from ...ir.op import (
    Expansion,
    Gradient,
    Hidden,
    HiddenKind,
    Init,
    Layouts,
    Library,
    Linear,
    Method,
    Op,
    Precision,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import floating, with_rank
from ...ir.types import TensorType, TupleType, Type
from ..shared.conv_methods import BACKWARD, IMAGES, ROWS
from ..shared.convolving import (
    batched,
    conv_bias,
    conv_type,
    conv_weight,
    padded,
    those_wanted,
    window_attrs,
)
from ..shared.operands import is_given
from ..shared.window import padding_of, same_padding
from . import join, view

if TYPE_CHECKING:
    from ..builder import Value


def _explicit_padding(p: Pullback, kernel: Sequence[Dim]) -> list[tuple[int, int]]:
    """Return the padding before and after each spatial dim. `same` needs a kernel of known size."""
    padding = p.attrs["padding"]
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding != "same":
        return [(v, v) for v in padding]
    found: list[tuple[int, int]] = []
    for size, dilation in zip(kernel, p.attrs["dilation"], strict=True):
        assert size.constant is not None
        found.append(same_padding(size.constant, dilation))
    return found


def _conv_grad(p: Pullback) -> tuple[Value | None, ...]:
    x, weight, bias = p.args
    g, image = batched(p.g, weight.rank), batched(x, weight.rank)
    sides = _explicit_padding(p, weight.shape[2:])
    attrs = {k: p.attrs[k] for k in ("stride", "dilation", "groups")}
    uneven = any(before != after for before, after in sides)
    if uneven:  # pad by hand, and cut the padding off again
        edges = tuple(side for pair in reversed(sides) for side in pair)
        image = join.pad(image, pad=edges)
        attrs["padding"] = (0,) * len(sides)
    else:
        attrs["padding"] = tuple(before for before, _ in sides)
    wanted = (p.wanted[0], p.wanted[1], p.wanted[2] and is_given(bias))
    if not any(wanted):
        return None, None, None
    found = conv_backward(g, image, weight, wanted=wanted, **attrs)
    to_x, to_weight, to_bias = _by_operand(found, wanted)
    if to_x is None:
        return None, to_weight, to_bias
    if uneven:
        to_x = join.pad(to_x, pad=tuple(-side for pair in reversed(sides) for side in pair))
    return to_x.reshape(*x.shape), to_weight, to_bias


def _by_operand(found: Value, wanted: Sequence[bool]) -> list[Value | None]:
    """Return the result of `conv_backward` for each operand, None where it was not wanted."""
    return [found[sum(wanted[:i])] if wanted[i] else None for i in range(len(wanted))]


def _convolution(
    n: int,
    *,
    doc: str,
    grad: Gradient | Expansion,
    samples: Callable[[], Iterable[Sample]],
    methods: tuple[Method, ...] = (),
) -> Op:
    """Return the convolution over `n` dims, in the last of which the kernel's elements follow each
    other."""

    def body(
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
        function = getattr(torch.nn.functional, f"conv{n}d")
        return function(x, weight, bias, stride, padding, dilation, groups)

    window = kinds.at_least(1, kinds.each_of(n))
    return Op(
        name=f"conv{n}d",
        doc=doc,
        params=(
            operand("input", promote=True),
            operand("weight", promote=True),
            optional("bias"),
            attribute("stride", 1, window),
            attribute("padding", 0, padding_of(n)),
            attribute("dilation", 1, window),
            attribute("groups", 1, kinds.at_least(1, kinds.size)),
        ),
        promotion=Promotion.COMMON,
        type_rule=conv_type,
        shape=ShapeBehaviour.FEATURE_BATCHED,
        precision=Precision.NARROW,
        layouts=Layouts.IMAGES if n == 2 else Layouts.PLAIN,
        lowering=Library(body, is_fresh=True, methods=methods),
        grad=grad,
        push=Linear(("input",), ("weight", "bias"), added="bias"),
        hidden=(
            Hidden("weight", HiddenKind.PARAMETER, Init.FAN_IN, conv_weight),
            Hidden("bias", HiddenKind.PARAMETER, Init.ZEROS, conv_bias, only_if="bias"),
        ),
        hyper=(
            attribute("out_channels", convert=kinds.size),
            attribute("kernel_size", convert=window),
            attribute("bias", True, kinds.flag),
        ),
        torch_name=f"nn.functional.conv{n}d",
        samples=samples,
    )


def _conv2d_samples() -> Iterable[Sample]:
    image, weight, bias = TensorSpec((2, 3, 6, 5)), TensorSpec((4, 3, 3, 2)), TensorSpec((4,))
    yield Sample((image, weight, bias))
    yield Sample((image, weight, None), {"stride": 2})
    yield Sample((image, weight, bias), {"stride": (1, 2), "padding": (2, 1), "dilation": (2, 1)})
    yield Sample((image, weight, bias), {"padding": "same"})
    yield Sample((image, weight, None), {"padding": "same", "dilation": 2})
    yield Sample((image, weight, None), {"padding": "valid"})
    yield Sample((TensorSpec((3, 6, 5)), weight, bias))
    yield Sample((TensorSpec((0, 3, 6, 5)), weight, bias))
    yield Sample((TensorSpec((2, 4, 5, 5)), TensorSpec((6, 2, 3, 3)), None), {"groups": 2})
    yield Sample((TensorSpec((2, 3, 6, 5), contiguous=False), weight, bias))


conv2d: Final = _convolution(
    2,
    doc="Cross-correlation of images with kernels; the weight is (out, in / groups, kH, kW).",
    grad=_conv_grad,
    samples=_conv2d_samples,
    methods=IMAGES,
)


def _conv3d_samples() -> Iterable[Sample]:
    volume, weight, bias = (
        TensorSpec((2, 2, 4, 5, 3)),
        TensorSpec((3, 2, 2, 3, 2)),
        TensorSpec((3,)),
    )
    yield Sample((volume, weight, bias))
    yield Sample((volume, weight, None), {"stride": (1, 2, 1), "padding": (1, 0, 2), "dilation": 2})
    yield Sample((volume, weight, bias), {"padding": "same"})
    yield Sample((TensorSpec((2, 4, 5, 3)), weight, None), {"padding": "valid"})
    yield Sample((TensorSpec((0, 2, 4, 5, 3)), weight, bias))
    yield Sample((TensorSpec((1, 4, 3, 3, 3)), TensorSpec((2, 2, 2, 2, 2)), None), {"groups": 2})
    yield Sample((TensorSpec((2, 2, 4, 5, 3), contiguous=False), weight, bias))


conv3d: Final = _convolution(
    3,
    doc="Cross-correlation of volumes with kernels; the weight is (out, in / groups, kD, kH, kW).",
    grad=_conv_grad,
    samples=_conv3d_samples,
)


def _conv1d_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    """Return the convolution of rows as one of images of height 1."""
    x, weight, bias = args
    first = {"stride": 1, "padding": 0, "dilation": 1}
    flat = {
        k: (first[k], *v) if k in first and isinstance(v, tuple) else v for k, v in attrs.items()
    }
    given = bias if is_given(bias) else None
    found = conv2d(x.unsqueeze(-2), weight.unsqueeze(-2), given, **flat)
    return view.squeeze(found, dim=-2)


def _conv1d_samples() -> Iterable[Sample]:
    row, weight, bias = TensorSpec((2, 3, 8)), TensorSpec((4, 3, 3)), TensorSpec((4,))
    yield Sample((row, weight, bias))
    yield Sample((row, weight, None), {"stride": 2, "padding": 2, "dilation": 2})
    yield Sample((row, TensorSpec((4, 3, 2)), bias), {"padding": "same"})
    yield Sample((row, weight, None), {"padding": "valid"})
    yield Sample((TensorSpec((3, 8)), weight, bias))
    yield Sample((TensorSpec((0, 3, 8)), weight, bias))
    yield Sample((TensorSpec((2, 4, 8)), TensorSpec((6, 2, 3)), None), {"groups": 2})
    yield Sample((TensorSpec((2, 3, 8), contiguous=False), weight, bias))


conv1d: Final = _convolution(
    1,
    doc="Cross-correlation of rows with kernels; the weight is (out, in / groups, k).",
    grad=Expansion(_conv1d_code),
    samples=_conv1d_samples,
    methods=ROWS,
)


_WINDOW: Final = (
    attribute("stride", 1, kinds.at_least(1, kinds.sizes)),
    attribute("padding", 0, kinds.at_least(0, kinds.sizes)),
    attribute("dilation", 1, kinds.at_least(1, kinds.sizes)),
    attribute("groups", 1, kinds.at_least(1, kinds.size)),
)
"""The attributes of the derivatives, which are those of convolutions over 2 and 3 dims alike."""


def _linear_part(call: RuleCall, size: str) -> Type:
    """Return the type of a gradient of a convolution, whose shape the attribute `size` states."""
    source = floating(call, 0)
    with_rank(call, 0, 4, 5)
    with_rank(call, 1, source.rank)
    return TensorType(call.attrs[size], source.dtype)


def _forward(x: Value, weight: Value, attrs: Mapping[str, Any]) -> Value:
    """Return the convolution of which these are the operands."""
    return (conv2d if x.rank == 4 else conv3d)(x, weight, None, **attrs)


def _operand_gradient(
    number: int, gradient: Callable[[Pullback], Sequence[Value]], samples: Sequence[Sample]
) -> Op:
    """Return the operator for the cotangent of the input (0) or the weight (1) of a convolution,
    from that of its result and the other of the two; `input_size` or `weight_size` is its shape."""
    names = ("input", "weight")
    name, other = names[number], names[1 - number]

    def body(torch: Any, g: Any, known: Any, size: tuple[int, ...], *attrs: Any) -> Any:
        stride, padding, dilation, groups = attrs
        blank = g.new_empty(1).expand(size)
        x, weight = (blank, known) if number == 0 else (known, blank)
        return torch.ops.aten.convolution_backward(
            g, x, weight, None, stride, padding, dilation, False, [0] * len(stride), groups,
            [number == 0, number == 1, False],
        )[number]  # fmt: skip

    return Op(
        name=f"conv_{name}_grad",
        doc=f"The cotangent of the {name} of a convolution from that of its result.",
        params=(
            operand("grad", promote=True),
            operand(other, promote=True),
            attribute(f"{name}_size", convert=kinds.shape),
            *_WINDOW,
        ),
        promotion=Promotion.COMMON,
        type_rule=lambda call: _linear_part(call, f"{name}_size"),
        shape=ShapeBehaviour.FIXED,
        precision=Precision.NARROW,
        lowering=Library(body, is_fresh=True),
        grad=gradient,
        push=Linear(("grad",), (other,)),
        samples=lambda: samples,
    )


conv_input_grad: Final = _operand_gradient(
    0,
    lambda p: (
        _forward(p.g, p.args[1], window_attrs(p)),
        conv_weight_grad(p.args[0], p.g, weight_size=p.args[1].shape, **window_attrs(p)),
    ),
    (
        Sample((TensorSpec((2, 4, 4, 4)), TensorSpec((4, 3, 3, 2))), {"input_size": (2, 3, 6, 5)}),
        Sample(
            (TensorSpec((2, 4, 3, 2)), TensorSpec((4, 3, 3, 2))),
            {"input_size": (2, 3, 6, 5), "stride": 2, "padding": (1, 0)},
        ),
        Sample(
            (TensorSpec((2, 4, 4, 4), contiguous=False), TensorSpec((4, 1, 2, 2))),
            {"input_size": (2, 2, 5, 5), "groups": 2},
        ),
        Sample((TensorSpec((0, 4, 4, 4)), TensorSpec((4, 3, 3, 2))), {"input_size": (0, 3, 6, 5)}),
    ),
)

conv_weight_grad: Final = _operand_gradient(
    1,
    lambda p: (
        _forward(p.args[1], p.g, window_attrs(p)),
        conv_input_grad(p.args[0], p.g, input_size=p.args[1].shape, **window_attrs(p)),
    ),
    (
        Sample((TensorSpec((2, 4, 4, 4)), TensorSpec((2, 3, 6, 5))), {"weight_size": (4, 3, 3, 2)}),
        Sample(
            (TensorSpec((2, 4, 3, 2)), TensorSpec((2, 3, 6, 5), contiguous=False)),
            {"weight_size": (4, 3, 3, 2), "stride": 2, "padding": (1, 0)},
        ),
        Sample(
            (TensorSpec((2, 4, 4, 4)), TensorSpec((2, 2, 5, 5))),
            {"weight_size": (4, 1, 2, 2), "groups": 2},
        ),
        Sample((TensorSpec((0, 4, 4, 4)), TensorSpec((0, 3, 6, 5))), {"weight_size": (4, 3, 3, 2)}),
    ),
)


def _backward_type(call: RuleCall) -> Type:
    g = floating(call, 0)
    parts = (
        with_rank(call, 1, g.rank),
        with_rank(call, 2, g.rank),
        TensorType((with_rank(call, 0, 4, 5).shape[1],), g.dtype),
    )
    wanted = call.attrs["wanted"]
    if len(wanted) != len(parts):
        call.clash(f"`wanted` has a truth for each of {len(parts)} cotangents, not {len(wanted)}")
    return TupleType(tuple(p for p, w in zip(parts, wanted, strict=True) if w))


def _conv_backward(
    torch: Any, g: Any, x: Any, weight: Any, wanted: tuple[bool, ...], *attrs: Any
) -> Any:
    stride, padding, dilation, groups = attrs
    none = (0,) * len(stride)
    found = torch.ops.aten.convolution_backward(
        g, x, weight, (weight.shape[0],), stride, padding, dilation, False, none, groups, wanted
    )
    return those_wanted(found, wanted)


def _conv_backward_grad(p: Pullback) -> tuple[Value | None, ...]:
    (g, x, weight), attrs = p.args, window_attrs(p)
    of_x, of_weight, of_bias = (
        None if part is None or part.builder.is_zero(part) else part
        for part in _by_operand(p.g, p.attrs["wanted"])
    )
    to_g: list[Value] = []
    to_x = to_weight = None
    if of_x is not None:
        to_g.append(_forward(of_x, weight, attrs))
        to_weight = conv_weight_grad(g, of_x, weight_size=weight.shape, **attrs)
    if of_weight is not None:
        to_g.append(_forward(x, of_weight, attrs))
        to_x = conv_input_grad(g, of_weight, input_size=x.shape, **attrs)
    if of_bias is not None:
        to_g.append(of_bias.reshape(of_bias.shape[0], *[1] * (g.rank - 2)).expand(g.shape))
    return (reduce(operator.add, to_g) if to_g else None), to_x, to_weight


def _conv_backward_samples() -> Iterable[Sample]:
    g, x, weight = TensorSpec((2, 4, 4, 4)), TensorSpec((2, 3, 6, 5)), TensorSpec((4, 3, 3, 2))
    yield Sample((g, x, weight), {"wanted": (True, True, True)})
    yield Sample((g, x, weight), {"wanted": (False, True, True)})
    yield Sample((g, x, weight), {"wanted": (True, False, False)})
    yield Sample((g, x, weight), {"wanted": (False, False, True)})
    yield Sample(
        (TensorSpec((2, 4, 3, 2)), x, weight),
        {"wanted": (True, True, False), "stride": 2, "padding": (1, 0)},
    )
    yield Sample(
        (TensorSpec((2, 4, 4, 4)), TensorSpec((2, 2, 5, 5)), TensorSpec((4, 1, 2, 2))),
        {"wanted": (True, True, True), "groups": 2},
    )
    strided = TensorSpec((2, 4, 4, 4), contiguous=False)
    yield Sample((strided, x, weight), {"wanted": (True, True, True)})
    empty = (TensorSpec((0, 4, 4, 4)), TensorSpec((0, 3, 6, 5)))
    yield Sample((*empty, weight), {"wanted": (True, True, True)})


conv_backward: Final = Op(
    name="conv_backward",
    doc="The cotangents of those operands of a convolution that are `wanted`, of its input, its "
    "weight and its bias, from that of its result.",
    params=(
        operand("grad", promote=True),
        operand("input", promote=True),
        operand("weight", promote=True),
        attribute("wanted", convert=kinds.flags),
        *_WINDOW,
    ),
    promotion=Promotion.COMMON,
    type_rule=_backward_type,
    shape=ShapeBehaviour.FIXED,
    precision=Precision.NARROW,
    lowering=Library(_conv_backward, is_fresh=True, methods=BACKWARD),
    grad=_conv_backward_grad,
    samples=_conv_backward_samples,
)

CONVOLUTIONS: Final = frozenset((conv1d, conv2d, conv3d))
