"""Relay's operators of neural networks, with its layouts and its paddings."""

from __future__ import annotations

from typing import Any, Final

from ..expr import Expr
from ..op import Op
from ..ops import (
    activation,
    arithmetic,
    compare,
    conv,
    conv_transpose,
    create,
    extrema,
    join,
    linalg,
    math,
    norm,
    pool,
    pool1d,
    sizes,
    view,
)
from ..ops.reduce import mean, sum_
from .imported import REQUIRED, Emit, Imported, integer, integers, only, refuse


def _dense(e: Emit, x: Expr, weight: Expr, **attrs: Any) -> Expr:
    only(attrs["out_dtype"], "", "out_dtype")
    units = attrs["units"]
    hyper = {} if units is None else {"out_features": integer(units, "units")}
    return e.call(linalg.linear, x, weight, **hyper)


def _swapped(e: Emit, x: Expr, *, swap: Any) -> Expr:
    return e.call(view.swapaxes, x, axis0=-2, axis1=-1) if swap else x


def _matmul(e: Emit, x: Expr, y: Expr, **attrs: Any) -> Expr:
    only(attrs["out_dtype"], "", "out_dtype")
    left = _swapped(e, x, swap=attrs["transpose_a"])
    right = _swapped(e, y, swap=attrs["transpose_b"])
    return e.call(linalg.matmul, left, right)


def _at_axis(e: Emit, x: Expr, axis: int, body: Any) -> Expr:
    """Give `body` of a tensor whose dim `axis` is brought to the end, and brought back after."""
    if axis == -1:
        return body(x)
    there = e.call(view.swapaxes, x, axis0=axis, axis1=-1)
    return e.call(view.swapaxes, body(there), axis0=axis, axis1=-1)


def _bias_add(e: Emit, x: Expr, bias: Expr, *, axis: Any) -> Expr:
    return _at_axis(e, x, integer(axis, "axis"), lambda there: e.call(arithmetic.add, there, bias))


def _prelu(e: Emit, x: Expr, alpha: Expr, *, axis: Any) -> Expr:
    def body(there: Expr) -> Expr:
        there = e.named(there)
        below = e.call(arithmetic.multiply, there, alpha)
        positive = e.call(compare.greater, there, e.number(0.0))
        return e.call(compare.where, positive, there, below)

    return _at_axis(e, x, integer(axis, "axis"), body)


_TO_FIRST: Final = {"NCHW": None, "NHWC": (0, 3, 1, 2), "NCW": None, "NWC": (0, 2, 1)}
"""For each layout of data, the permutation that brings the channels to dim 1."""
_BACK: Final = {"NCHW": None, "NHWC": (0, 2, 3, 1), "NCW": None, "NWC": (0, 2, 1)}
_KERNELS: Final = {
    "OIHW": None,
    "HWIO": (3, 2, 0, 1),
    "HWOI": (2, 3, 0, 1),
    "OHWI": (0, 3, 1, 2),
    "OIW": None,
    "WIO": (2, 1, 0),
    "IOHW": (1, 0, 2, 3),
}
"""For each layout of a kernel, the permutation to output, input, height, width."""


def _permuted(e: Emit, x: Expr, table: Any, layout: Any, name: str) -> Expr:
    if layout not in table:
        refuse(f'is not supported with `{name}="{layout}"`', f"write one of {', '.join(table)}")
    order = table[layout]
    return x if order is None else e.call(view.permute, x, dims=order)


def _padded(
    e: Emit, x: Expr, padding: Any, rank: int, *, value: float = 0.0, most: tuple[int, ...] = ()
) -> tuple[Expr, Any]:
    """Give a padding that is equal on both sides and at most `most`, which torch wants; any other
    is added to the tensor before."""
    sides = integers(padding, "padding")
    if len(sides) == 1:
        sides *= rank
    if len(sides) == rank:
        sides *= 2
    if len(sides) != 2 * rank:
        refuse(f"needs {2 * rank} numbers as `padding`")
    before, after = sides[:rank], sides[rank:]
    if before == after and all(n <= m for n, m in zip(before, most, strict=False)):
        return x, before
    pairs = zip(reversed(before), reversed(after), strict=True)
    flat = tuple(n for pair in pairs for n in pair)
    return e.call(join.pad, x, pad=flat, mode="constant", value=value), (0,) * rank


def _window(rank: int, letters: str) -> dict[str, Any]:
    return {
        "strides": (1,) * rank,
        "padding": (0,) * rank,
        "dilation": (1,) * rank,
        "groups": 1,
        "channels": None,
        "kernel_size": None,
        "data_layout": f"NC{letters}",
        "kernel_layout": f"OI{letters}",
        "out_layout": "",
        "out_dtype": "",
    }


def _checked_window(attrs: Any) -> None:
    only(attrs["out_dtype"], "", "out_dtype")
    only(attrs["out_layout"] or attrs["data_layout"], attrs["data_layout"], "out_layout")


def _hyper(attrs: Any) -> dict[str, Any]:
    """Give what a convolution says of its weight; `channels` alone says too little."""
    channels, kernel = attrs["channels"], attrs["kernel_size"]
    if channels is None or kernel is None:
        return {}
    return {
        "out_channels": integer(channels, "channels"),
        "kernel_size": integers(kernel, "kernel_size"),
    }


def _conv(op: Op, rank: int) -> Any:
    def build(e: Emit, x: Expr, weight: Expr, **attrs: Any) -> Expr:
        _checked_window(attrs)
        layout = attrs["data_layout"]
        x = _permuted(e, x, _TO_FIRST, layout, "data_layout")
        weight = _permuted(e, weight, _KERNELS, attrs["kernel_layout"], "kernel_layout")
        x, padding = _padded(e, x, attrs["padding"], rank)
        out = e.call(
            op,
            x,
            weight,
            stride=integers(attrs["strides"], "strides"),
            padding=padding,
            dilation=integers(attrs["dilation"], "dilation"),
            groups=integer(attrs["groups"], "groups"),
            **_hyper(attrs),
        )
        return _permuted(e, out, _BACK, layout, "data_layout")

    return build


def _conv_transpose(e: Emit, x: Expr, weight: Expr, **attrs: Any) -> Expr:
    _checked_window(attrs)
    only(attrs["data_layout"], "NCHW", "data_layout")
    only(attrs["kernel_layout"], "IOHW", "kernel_layout")
    sides = integers(attrs["padding"], "padding")
    if len(sides) == 4:
        if sides[:2] != sides[2:]:
            refuse("is supported with the same padding on both sides only")
        sides = sides[:2]
    return e.call(
        conv_transpose.conv_transpose2d,
        x,
        weight,
        stride=integers(attrs["strides"], "strides"),
        padding=sides,
        output_padding=integers(attrs["output_padding"], "output_padding"),
        groups=integer(attrs["groups"], "groups"),
        dilation=integers(attrs["dilation"], "dilation"),
    )


def _pool_attributes(rank: int, letters: str) -> dict[str, Any]:
    return {
        "pool_size": REQUIRED,
        "strides": (1,) * rank,
        "dilation": (1,) * rank,
        "padding": (0,) * rank,
        "layout": f"NC{letters}",
        "out_layout": "",
        "ceil_mode": False,
    }


def _max_pool(op: Op, rank: int) -> Any:
    def build(e: Emit, x: Expr, **attrs: Any) -> Expr:
        only(attrs["out_layout"] or attrs["layout"], attrs["layout"], "out_layout")
        x = _permuted(e, x, _TO_FIRST, attrs["layout"], "layout")
        size = integers(attrs["pool_size"], "pool_size")
        most = tuple(n // 2 for n in size)
        x, padding = _padded(e, x, attrs["padding"], rank, value=float("-inf"), most=most)
        out = e.call(
            op,
            x,
            kernel_size=size,
            stride=integers(attrs["strides"], "strides"),
            padding=padding,
            dilation=integers(attrs["dilation"], "dilation"),
            ceil_mode=bool(attrs["ceil_mode"]),
        )
        return _permuted(e, out, _BACK, attrs["layout"], "layout")

    return build


def _avg_pool(op: Op, rank: int) -> Any:
    def build(e: Emit, x: Expr, **attrs: Any) -> Expr:
        only(attrs["out_layout"] or attrs["layout"], attrs["layout"], "out_layout")
        if set(integers(attrs["dilation"], "dilation")) != {1}:
            refuse("is supported without dilation only")
        x = _permuted(e, x, _TO_FIRST, attrs["layout"], "layout")
        size = integers(attrs["pool_size"], "pool_size")
        most = tuple(n // 2 for n in size)
        padded, padding = _padded(e, x, attrs["padding"], rank, most=most)
        if padded is not x and not attrs["count_include_pad"]:
            refuse("is supported with the same padding on both sides only")
        out = e.call(
            op,
            padded,
            kernel_size=size,
            stride=integers(attrs["strides"], "strides"),
            padding=padding,
            ceil_mode=bool(attrs["ceil_mode"]),
            count_include_pad=bool(attrs["count_include_pad"]),
        )
        return _permuted(e, out, _BACK, attrs["layout"], "layout")

    return build


def _global_pool(op: Op) -> Any:
    def build(e: Emit, x: Expr, *, layout: Any, out_layout: Any) -> Expr:
        only(out_layout or layout, layout, "out_layout")
        x = _permuted(e, x, _TO_FIRST, layout, "layout")
        return _permuted(e, e.call(op, x, dim=(2, 3), keepdim=True), _BACK, layout, "layout")

    return build


def _adaptive_pool(e: Emit, x: Expr, *, output_size: Any, layout: Any, out_layout: Any) -> Expr:
    only(out_layout or layout, layout, "out_layout")
    x = _permuted(e, x, _TO_FIRST, layout, "layout")
    out = e.call(pool.adaptive_avg_pool2d, x, output_size=integers(output_size, "output_size"))
    return _permuted(e, out, _BACK, layout, "layout")


def _batch_norm(
    e: Emit, x: Expr, gamma: Expr, beta: Expr, average: Expr, variance: Expr, **attrs: Any
) -> Expr:
    """Relay's batch norm uses the statistics it is given, and gives them back."""
    average, variance = e.named(average, "mean"), e.named(variance, "var")
    axis = integer(attrs["axis"], "axis")
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

    return _at_axis(e, x, integer(attrs["axis"], "axis"), body)


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


_NORM: Final = {"axis": 1, "epsilon": 1e-5, "center": True, "scale": True}
_MATMUL: Final = {
    "units": None,
    "out_dtype": "",
    "transpose_a": False,
    "transpose_b": False,
    "auto_scheduler_rewritten_layout": "",
}
_GLOBAL: Final = {"layout": "NCHW", "out_layout": ""}

NETWORKS: Final = (
    Imported(
        name="nn.dense",
        operands=("data", "weight"),
        attributes={"units": None, "out_dtype": "", "auto_scheduler_rewritten_layout": ""},
        build=_dense,
    ),
    Imported(
        name="nn.matmul",
        operands=("tensor_a", "tensor_b"),
        attributes=_MATMUL,
        build=_matmul,
    ),
    Imported(
        name="nn.batch_matmul",
        operands=("tensor_a", "tensor_b"),
        attributes={**_MATMUL, "transpose_b": True},
        build=_matmul,
    ),
    Imported(
        name="nn.bias_add",
        operands=("data", "bias"),
        attributes={"axis": 1},
        build=_bias_add,
    ),
    Imported(name="nn.relu", operands=("data",), build=lambda e, x: e.call(activation.relu, x)),
    Imported(
        name="nn.leaky_relu",
        operands=("data",),
        attributes={"alpha": 0.25},
        build=lambda e, x, *, alpha: e.call(activation.leaky_relu, x, negative_slope=alpha),
    ),
    Imported(name="nn.prelu", operands=("data", "alpha"), attributes={"axis": 1}, build=_prelu),
    Imported(
        name="nn.conv2d",
        operands=("data", "weight"),
        attributes={**_window(2, "HW"), "auto_scheduler_rewritten_layout": ""},
        build=_conv(conv.conv2d, 2),
    ),
    Imported(
        name="nn.conv1d",
        operands=("data", "weight"),
        attributes=_window(1, "W"),
        build=_conv(conv.conv1d, 1),
    ),
    Imported(
        name="nn.conv2d_transpose",
        operands=("data", "weight"),
        attributes={
            **_window(2, "HW"),
            "kernel_layout": "IOHW",
            "output_padding": (0, 0),
        },
        build=_conv_transpose,
    ),
    Imported(
        name="nn.max_pool2d",
        operands=("data",),
        attributes=_pool_attributes(2, "HW"),
        build=_max_pool(pool.max_pool2d, 2),
    ),
    Imported(
        name="nn.max_pool1d",
        operands=("data",),
        attributes=_pool_attributes(1, "W"),
        build=_max_pool(pool1d.max_pool1d, 1),
    ),
    Imported(
        name="nn.avg_pool2d",
        operands=("data",),
        attributes={**_pool_attributes(2, "HW"), "count_include_pad": False},
        build=_avg_pool(pool.avg_pool2d, 2),
    ),
    Imported(
        name="nn.avg_pool1d",
        operands=("data",),
        attributes={**_pool_attributes(1, "W"), "count_include_pad": False},
        build=_avg_pool(pool1d.avg_pool1d, 1),
    ),
    Imported(
        name="nn.global_avg_pool2d",
        operands=("data",),
        attributes=_GLOBAL,
        build=_global_pool(mean),
    ),
    Imported(
        name="nn.global_max_pool2d",
        operands=("data",),
        attributes=_GLOBAL,
        build=_global_pool(extrema.amax),
    ),
    Imported(
        name="nn.adaptive_avg_pool2d",
        operands=("data",),
        attributes={"output_size": REQUIRED, **_GLOBAL},
        build=_adaptive_pool,
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
        attributes={**_NORM, "axis": -1},
        build=_layer_norm,
    ),
    Imported(name="nn.dropout", operands=("data",), attributes={"rate": 0.5}, build=_dropout),
    Imported(name="nn.cross_entropy", operands=("predictions", "targets"), build=_cross_entropy),
    Imported(
        name="nn.cross_entropy_with_logits",
        operands=("predictions", "targets"),
        build=_with_logits,
    ),
)
