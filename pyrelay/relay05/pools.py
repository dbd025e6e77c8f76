"""Relay's pools, and its resizing of images."""

from __future__ import annotations

from typing import Any, Final

from ..ir.expr import Expr
from ..ir.op import Op
from ..operators.composite import pools
from ..operators.primitive import extrema, pool
from ..operators.primitive.reduce import mean
from . import attributes
from .attributes import Attribute, optional, refuse, word
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
