"""Relay's operators of neural networks but for its pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..ir.expr import Expr
from ..ir.op import Op
from ..ir.types import DType
from ..operators.composite import norm
from ..operators.composite.norm import instance_norm
from ..operators.host import sizes
from ..operators.matrices import products as linalg
from ..operators.primitive import (
    activation,
    arithmetic,
    compare,
    conv,
    conv_transpose,
    create,
    math,
    view,
)
from ..operators.primitive.reduce import mean, sum_
from . import attributes
from .attributes import Attribute, only, optional, refuse, word
from .images import LAYOUTS, TO_FIRST, each, from_first, padded_image, permuted, sides
from .imported import Emit, Imported, always


def _in_dtype(e: Emit, x: Expr, dtype: DType | None) -> Expr:
    """Build an operand in the dtype that the result is computed in, if the call names one."""
    return x if dtype is None else e.call(compare.cast, x, dtype=dtype)


def _dense(e: Emit, x: Expr, weight: Expr, *, units: Any, out_dtype: Any, **_: Any) -> Expr:
    x, weight = (_in_dtype(e, operand, out_dtype) for operand in (x, weight))
    return e.call(linalg.linear, x, weight, **({} if units is None else {"out_features": units}))


def _swapped(e: Emit, x: Expr, *, swap: bool) -> Expr:
    return e.call(view.swapaxes, x, axis0=-2, axis1=-1) if swap else x


def _matmul(e: Emit, x: Expr, y: Expr, *, units: Any, **attrs: Any) -> Expr:
    if units is None and (e.rank(y) != 2 or e.rank(x) < 2):
        ranks = f"not of {e.rank(x)} and {e.rank(y)}"
        refuse(f"takes operands of ranks 2 (or more) and 2, {ranks}", "see `nn.batch_matmul`")
    left, right = (_in_dtype(e, operand, attrs["out_dtype"]) for operand in (x, y))
    left = _swapped(e, left, swap=attrs["transpose_a"])
    right = _swapped(e, right, swap=not attrs["transpose_b"])
    return e.call(linalg.linear, left, right, **({} if units is None else {"out_features": units}))


def _batch_matmul(e: Emit, x: Expr, y: Expr, **attrs: Any) -> Expr:
    if (e.rank(x), e.rank(y)) != (3, 3):
        refuse(f"takes operands of rank 3, not of {e.rank(x)} and {e.rank(y)}")
    left, right = (_in_dtype(e, operand, attrs["out_dtype"]) for operand in (x, y))
    left = _swapped(e, left, swap=attrs["transpose_a"])
    return e.call(linalg.matmul, left, _swapped(e, right, swap=attrs["transpose_b"]))


def _at_axis(e: Emit, x: Expr, axis: int, body: Any) -> Expr:
    """Return `body` of a tensor whose dim `axis` is brought to the end, and brought back after."""
    if axis == -1:
        return body(x)
    there = e.call(view.swapaxes, x, axis0=axis, axis1=-1)
    return e.call(view.swapaxes, body(there), axis0=axis, axis1=-1)


def _bias_add(e: Emit, x: Expr, bias: Expr, *, axis: int) -> Expr:
    return _at_axis(e, x, axis, lambda there: e.call(arithmetic.add, there, bias))


def _prelu(e: Emit, x: Expr, alpha: Expr, *, axis: int) -> Expr:
    def body(there: Expr) -> Expr:
        there = e.named(there)
        below = e.call(arithmetic.multiply, there, alpha)
        positive = e.call(compare.greater, there, e.number(0.0))
        return e.call(compare.where, positive, there, below)

    return _at_axis(e, x, axis, body)


_KERNELS: Final = {
    "OIHW": None,
    "HWIO": (3, 2, 0, 1),
    "HWOI": (2, 3, 0, 1),
    "OHWI": (0, 3, 1, 2),
    "OIW": None,
    "WIO": (2, 1, 0),
    "IOHW": (1, 0, 2, 3),
    "OIDHW": None,
    "DHWIO": (4, 3, 0, 1, 2),
}
"""For each layout of a kernel, the permutation to output, input, and the dims of the window."""


_DTYPE: Final = optional(attributes.dtype)
_KERNEL_LAYOUTS: Final = {
    1: ("OIW", "WIO"),
    2: ("OIHW", "HWIO", "HWOI", "OHWI", "IOHW"),
    3: ("OIDHW", "DHWIO"),
}


def _window(rank: int, kernel_layouts: tuple[str, ...]) -> dict[str, Attribute]:
    return {
        "strides": each(rank, 1),
        "padding": each(rank, 0),
        "dilation": each(rank, 1),
        "groups": Attribute(attributes.integer, 1),
        "channels": optional(attributes.integer),
        "kernel_size": optional(attributes.integers),
        "data_layout": Attribute(word(*LAYOUTS[rank]), LAYOUTS[rank][0]),
        "kernel_layout": Attribute(word(*kernel_layouts), kernel_layouts[0]),
        "out_layout": optional(word(*LAYOUTS[rank])),
        "out_dtype": _DTYPE,
    }


def _says_half(attrs: Mapping[str, Any]) -> bool:
    """Return whether a convolution says one of the channels and the size of its kernel alone."""
    return (attrs["channels"] is None) is not (attrs["kernel_size"] is None)


def _hyper(e: Emit, weight: Expr, attrs: Any) -> dict[str, Any]:
    """Return the facts that a convolution states of its weight; others are read off the weight."""
    channels, kernel = attrs["channels"], attrs["kernel_size"]
    if channels is None and kernel is None:
        return {}
    if _says_half(attrs):
        shape = dict(zip(attrs["kernel_layout"], e.shape(weight), strict=False))
        out = shape["O"] * (attrs["groups"] if attrs["kernel_layout"] == "IOHW" else 1)
        window = tuple(shape[letter] for letter in "DHW" if letter in shape)
        channels, kernel = channels or out, kernel or window
    return {"out_channels": channels, "kernel_size": kernel}


def _conv(op: Op, rank: int) -> Any:
    def build(e: Emit, x: Expr, weight: Expr, **attrs: Any) -> Expr:
        hyper = _hyper(e, weight, attrs)
        x, weight = (_in_dtype(e, operand, attrs["out_dtype"]) for operand in (x, weight))
        x = permuted(e, x, TO_FIRST[attrs["data_layout"]])
        weight = permuted(e, weight, _KERNELS[attrs["kernel_layout"]])
        x, padding = padded_image(e, x, attrs["padding"], rank)
        out = e.call(
            op,
            x,
            weight,
            stride=attrs["strides"],
            padding=padding,
            dilation=attrs["dilation"],
            groups=attrs["groups"],
            **hyper,
        )
        return from_first(e, out, attrs["data_layout"], attrs["out_layout"])

    return build


def _conv_transpose(e: Emit, x: Expr, weight: Expr, **attrs: Any) -> Expr:
    hyper = _hyper(e, weight, attrs)
    x, weight = (_in_dtype(e, operand, attrs["out_dtype"]) for operand in (x, weight))
    before, after = sides(attrs["padding"], 2)
    if before != after:
        refuse("is supported with the same `padding` on both sides only")
    out = e.call(
        conv_transpose.conv_transpose2d,
        permuted(e, x, TO_FIRST[attrs["data_layout"]]),
        weight,
        stride=attrs["strides"],
        padding=before,
        output_padding=attrs["output_padding"],
        groups=attrs["groups"],
        dilation=attrs["dilation"],
        **hyper,
    )
    return from_first(e, out, attrs["data_layout"], attrs["out_layout"])


def _batch_norm(
    e: Emit, x: Expr, gamma: Expr, beta: Expr, average: Expr, variance: Expr, **attrs: Any
) -> Expr:
    """Relay's batch norm uses the statistics it is given, and gives them back."""
    average, variance = e.named(average, "mean"), e.named(variance, "var")
    axis = attrs["axis"]
    if axis != 1:
        x = e.call(view.swapaxes, x, axis0=axis, axis1=1)
    out: Expr = e.call(
        norm.batch_norm,
        x,
        average,
        variance,
        gamma if attrs["scale"] else None,
        beta if attrs["center"] else None,
        training=False,
        eps=attrs["epsilon"],
    )
    out = e.get(out, 0)
    if axis != 1:
        out = e.call(view.swapaxes, out, axis0=axis, axis1=1)
    return e.tuple(out, average, variance)


def _layer_norm(e: Emit, x: Expr, gamma: Expr, beta: Expr, **attrs: Any) -> Expr:
    def body(there: Expr) -> Expr:
        there = e.named(there)
        return e.call(
            norm.layer_norm,
            there,
            gamma if attrs["scale"] else None,
            beta if attrs["center"] else None,
            normalized_shape=(e.call(sizes.dim_size, there, dim=-1),),
            eps=attrs["epsilon"],
        )

    return _at_axis(e, x, attrs["axis"], body)


def _instance_norm(e: Emit, x: Expr, gamma: Expr, beta: Expr, **attrs: Any) -> Expr:
    axis = attrs["axis"]
    if axis != 1:
        x = e.call(view.swapaxes, x, axis0=axis, axis1=1)
    out = e.call(
        instance_norm,
        x,
        gamma if attrs["scale"] else None,
        beta if attrs["center"] else None,
        eps=attrs["epsilon"],
    )
    return out if axis == 1 else e.call(view.swapaxes, out, axis0=axis, axis1=1)


def _dropout(e: Emit, x: Expr, *, rate: Any) -> Expr:
    """Relay's dropout is the identity; the second field is the mask, of which all is kept."""
    del rate
    x = e.named(x)
    return e.tuple(x, e.call(create.ones_like, x))


def _cross_entropy(e: Emit, predictions: Expr, targets: Expr) -> Expr:
    return _with_logits(e, e.call(math.log, predictions), targets)


def _with_logits(e: Emit, logs: Expr, targets: Expr) -> Expr:
    """Minus the sum of `targets * logs` over the classes, averaged over the batch: what Relay
    calls logits are logarithms of probabilities."""
    products = e.call(arithmetic.multiply, logs, targets)
    whole = e.call(sum_, products, dim=(-1,))
    return e.call(arithmetic.negative, e.call(mean, whole))


_NORM: Final = {
    "axis": Attribute(attributes.integer, 1),
    "epsilon": Attribute(attributes.number, 1e-5),
    "center": Attribute(attributes.flag, default=True),
    "scale": Attribute(attributes.flag, default=True),
}
_REWRITTEN: Final = {
    "auto_scheduler_rewritten_layout": only(""),
    "meta_schedule_original_shape": only(()),
}
"""The attributes that Relay's schedulers write of weights whose layout they have changed."""
_TRANSPOSED: Final = {
    "out_dtype": _DTYPE,
    "transpose_a": Attribute(attributes.flag, default=False),
    "transpose_b": Attribute(attributes.flag, default=False),
    **_REWRITTEN,
}

NETWORKS: Final = (
    Imported(
        name="nn.dense",
        operands=("data", "weight"),
        attributes={"units": optional(attributes.integer), "out_dtype": _DTYPE, **_REWRITTEN},
        build=_dense,
    ),
    Imported(
        name="nn.matmul",
        operands=("tensor_a", "tensor_b"),
        attributes={"units": optional(attributes.integer), **_TRANSPOSED},
        build=_matmul,
        needs_types=lambda attrs: attrs["units"] is None,
    ),
    Imported(
        name="nn.batch_matmul",
        operands=("tensor_a", "tensor_b"),
        attributes=_TRANSPOSED,
        build=_batch_matmul,
        needs_types=always,
    ),
    Imported(
        name="nn.bias_add",
        operands=("data", "bias"),
        attributes={"axis": Attribute(attributes.integer, 1)},
        build=_bias_add,
    ),
    Imported(name="nn.relu", operands=("data",), build=lambda e, x: e.call(activation.relu, x)),
    Imported(
        name="nn.leaky_relu",
        operands=("data",),
        attributes={"alpha": Attribute(attributes.number, 0.25)},
        build=lambda e, x, *, alpha: e.call(activation.leaky_relu, x, negative_slope=alpha),
    ),
    Imported(
        name="nn.prelu",
        operands=("data", "alpha"),
        attributes={"axis": Attribute(attributes.integer, 1)},
        build=_prelu,
    ),
    Imported(
        name="nn.conv2d",
        operands=("data", "weight"),
        attributes={**_window(2, _KERNEL_LAYOUTS[2]), **_REWRITTEN},
        build=_conv(conv.conv2d, 2),
        needs_types=_says_half,
    ),
    Imported(
        name="nn.conv3d",
        operands=("data", "weight"),
        attributes={**_window(3, _KERNEL_LAYOUTS[3]), **_REWRITTEN},
        build=_conv(conv.conv3d, 3),
        needs_types=_says_half,
    ),
    Imported(
        name="nn.conv1d",
        operands=("data", "weight"),
        attributes=_window(1, _KERNEL_LAYOUTS[1]),
        build=_conv(conv.conv1d, 1),
        needs_types=_says_half,
    ),
    Imported(
        name="nn.conv2d_transpose",
        operands=("data", "weight"),
        attributes={
            **_window(2, ("IOHW",)),
            "kernel_layout": only("IOHW"),
            "output_padding": each(2, 0),
        },
        build=_conv_transpose,
        needs_types=_says_half,
    ),
    Imported(
        name="nn.batch_norm",
        operands=("data", "gamma", "beta", "moving_mean", "moving_var"),
        attributes=_NORM,
        build=_batch_norm,
    ),
    Imported(
        name="nn.layer_norm",
        operands=("data", "gamma", "beta"),
        attributes={**_NORM, "axis": Attribute(attributes.integer, -1)},
        build=_layer_norm,
    ),
    Imported(
        name="nn.instance_norm",
        operands=("data", "gamma", "beta"),
        attributes=_NORM,
        build=_instance_norm,
    ),
    Imported(
        name="nn.dropout",
        operands=("data",),
        attributes={"rate": Attribute(attributes.number, 0.5)},
        build=_dropout,
    ),
    Imported(name="nn.cross_entropy", operands=("predictions", "targets"), build=_cross_entropy),
    Imported(
        name="nn.cross_entropy_with_logits", operands=("predictions", "targets"), build=_with_logits
    ),
)
