"""Relay's pools, and its resizing of images."""

from __future__ import annotations

from typing import Any, Final

from ..ir.expr import Expr
from ..ir.op import Op
from ..operators.composite import pools
from ..operators.composite.resample import interpolate
from ..operators.primitive import extrema, pool
from ..operators.primitive.compare import cast
from ..operators.primitive.reduce import mean
from . import attributes
from .attributes import Attribute, only, optional, refuse, word
from .images import LAYOUTS, TO_FIRST, each, from_first, padded_image, permuted
from .imported import Emit, Imported


def _layout(rank: int) -> dict[str, Attribute]:
    return {
        "layout": Attribute(word(*LAYOUTS[rank]), LAYOUTS[rank][0]),
        "out_layout": optional(word(*LAYOUTS[rank])),
    }


def _pool_attributes(rank: int) -> dict[str, Attribute]:
    return {
        "pool_size": Attribute(attributes.integers),
        "strides": each(rank, 1),
        "dilation": each(rank, 1),
        "padding": each(rank, 0),
        **_layout(rank),
        "ceil_mode": Attribute(attributes.flag, default=False),
    }


def _max_pool(op: Op, rank: int) -> Any:
    def build(e: Emit, x: Expr, **attrs: Any) -> Expr:
        size = attrs["pool_size"]
        x = permuted(e, x, TO_FIRST[attrs["layout"]])
        most = tuple(n // 2 for n in size)
        x, padding = padded_image(e, x, attrs["padding"], rank, value=float("-inf"), most=most)
        out = e.call(
            op,
            x,
            kernel_size=size,
            stride=attrs["strides"],
            padding=padding,
            dilation=attrs["dilation"],
            ceil_mode=attrs["ceil_mode"],
        )
        return from_first(e, out, attrs["layout"], attrs["out_layout"])

    return build


def _avg_pool(op: Op, rank: int) -> Any:
    def build(e: Emit, x: Expr, **attrs: Any) -> Expr:
        size = attrs["pool_size"]
        if set(attrs["dilation"]) != {1}:
            refuse("is supported without `dilation` only")
        x = permuted(e, x, TO_FIRST[attrs["layout"]])
        most = tuple(n // 2 for n in size)
        padded, padding = padded_image(e, x, attrs["padding"], rank, most=most)
        if padded is not x and not attrs["count_include_pad"]:
            refuse("is supported with the same `padding` on both sides only")
        out = e.call(
            op,
            padded,
            kernel_size=size,
            stride=attrs["strides"],
            padding=padding,
            ceil_mode=attrs["ceil_mode"],
            count_include_pad=attrs["count_include_pad"],
        )
        return from_first(e, out, attrs["layout"], attrs["out_layout"])

    return build


def _global_pool(op: Op) -> Any:
    def build(e: Emit, x: Expr, *, layout: str, out_layout: str | None) -> Expr:
        x = permuted(e, x, TO_FIRST[layout])
        return from_first(e, e.call(op, x, dim=(2, 3), keepdim=True), layout, out_layout)

    return build


def _adaptive_pool(
    e: Emit, x: Expr, *, output_size: Any, layout: str, out_layout: str | None
) -> Expr:
    x = permuted(e, x, TO_FIRST[layout])
    out = e.call(pool.adaptive_avg_pool2d, x, output_size=output_size)
    return from_first(e, out, layout, out_layout)


def _resize(
    e: Emit,
    x: Expr,
    *,
    size: Any,
    layout: str,
    method: str,
    coordinate_transformation_mode: str,
    rounding_method: str,
    out_dtype: Any,
    **_: Any,
) -> Expr:
    way = (method, coordinate_transformation_mode, rounding_method)
    if way not in _RESIZED:
        refuse(
            "is supported with half_pixel or align_corners for linear, and with asymmetric and "
            "floor for nearest_neighbor only"
        )
    x = permuted(e, x, TO_FIRST[layout])
    out = from_first(e, e.call(interpolate, x, size=size, **_RESIZED[way]), layout, None)
    return out if out_dtype is None else e.call(cast, out, dtype=out_dtype)


_RESIZED: Final[dict[tuple[str, str, str], dict[str, Any]]] = {
    ("linear", "half_pixel", ""): {"mode": "bilinear"},
    ("linear", "align_corners", ""): {"mode": "bilinear", "align_corners": True},
    ("nearest_neighbor", "asymmetric", "floor"): {"mode": "nearest"},
}
"""The ways to resize that agree with ours, and the attributes of each."""

_MAX: Final = {1: pools.max_pool1d, 2: pool.max_pool2d, 3: pools.max_pool3d}
_AVG: Final = {1: pools.avg_pool1d, 2: pool.avg_pool2d, 3: pools.avg_pool3d}

POOLS: Final = (
    *(
        Imported(
            name=f"nn.{op.name}",
            operands=("data",),
            attributes=_pool_attributes(rank),
            build=_max_pool(op, rank),
        )
        for rank, op in _MAX.items()
    ),
    *(
        Imported(
            name=f"nn.{op.name}",
            operands=("data",),
            attributes={
                **_pool_attributes(rank),
                "count_include_pad": Attribute(attributes.flag, default=False),
            },
            build=_avg_pool(op, rank),
        )
        for rank, op in _AVG.items()
    ),
    Imported(
        name="image.resize2d",
        operands=("data",),
        attributes={
            "size": Attribute(attributes.integers),
            "roi": only((0.0, 0.0, 0.0, 0.0)),
            "layout": Attribute(word(*LAYOUTS[2]), LAYOUTS[2][0]),
            "method": Attribute(word("linear", "nearest_neighbor", "cubic"), "linear"),
            "coordinate_transformation_mode": Attribute(
                word("half_pixel", "align_corners", "asymmetric"), "half_pixel"
            ),
            "rounding_method": Attribute(word("", "round", "floor", "ceil"), ""),
            "cubic_alpha": only(-0.5),
            "cubic_exclude": only(0),
            "extrapolation_value": only(0.0),
            "out_dtype": optional(attributes.dtype),
        },
        build=_resize,
    ),
    Imported(
        name="nn.global_avg_pool2d",
        operands=("data",),
        attributes=_layout(2),
        build=_global_pool(mean),
    ),
    Imported(
        name="nn.global_max_pool2d",
        operands=("data",),
        attributes=_layout(2),
        build=_global_pool(extrema.amax),
    ),
    Imported(
        name="nn.adaptive_avg_pool2d",
        operands=("data",),
        attributes={"output_size": Attribute(attributes.integers), **_layout(2)},
        build=_adaptive_pool,
    ),
)
