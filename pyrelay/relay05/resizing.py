"""Relay's operators that bring images to another size."""

from __future__ import annotations

from typing import Any, Final

from ..ir.expr import Call, Expr
from ..ir.types import DType, float64, int64
from ..operators.composite.resample import interpolate
from ..operators.host.sizes import as_size
from ..operators.primitive import arithmetic, create, gathering, math, view
from ..operators.primitive.compare import cast
from . import attributes
from .attributes import Attribute, only, optional, refuse, word
from .images import LAYOUTS, TO_FIRST, from_first, permuted
from .imported import Emit, Imported, always


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


def upsampled(
    e: Emit,
    x: Expr,
    scales: tuple[Expr | float, Expr | float],
    *,
    layout: str,
    method: str,
    align_corners: bool,
) -> Expr:
    """Build images whose height and width are those of `x` times the scales, rounded."""
    if method == "bicubic":
        refuse("is supported for nearest_neighbor and bilinear only")
    dtype = e.dtype(x)
    x = e.named(permuted(e, x, TO_FIRST[layout]))
    size = tuple(_scaled(e, x, dim, scale) for dim, scale in zip((2, 3), scales, strict=True))
    if method == "nearest_neighbor":
        out: Expr = e.call(interpolate, x, size=size, mode="nearest")
    elif align_corners:
        out = e.call(interpolate, x, size=size, mode="bilinear", align_corners=True)
    else:
        out = _between(e, _between(e, x, 2, size[0], dtype), 3, size[1], dtype)
    return from_first(e, out, layout, None)


def _scaled(e: Emit, x: Expr, dim: int, scale: Expr | float) -> Expr:
    """Build the size of a dim times a scale."""
    factor = e.number(float(scale), float64) if isinstance(scale, int | float) else scale
    own = e.call(cast, e.call(cast, e.size(x, dim), dtype=int64), dtype=float64)
    product = e.call(arithmetic.multiply, own, e.call(cast, factor, dtype=float64))
    return e.named(e.call(as_size, e.call(cast, e.call(math.round_, product), dtype=int64)))


def _between(e: Emit, x: Expr, dim: int, size: Expr, dtype: DType) -> Call:
    """Build elements between those of a dim, each at its place times the ratio of the sizes."""
    x = e.named(x)
    own = e.named(e.call(cast, e.size(x, dim), dtype=int64))
    last = e.named(e.call(arithmetic.subtract, own, e.number(1, int64)))
    count = e.call(cast, e.call(cast, size, dtype=int64), dtype=float64)
    ratio = e.call(arithmetic.divide, e.call(cast, own, dtype=float64), count)
    along = e.call(cast, e.call(create.arange, end=size, dtype=int64), dtype=float64)
    at = e.named(e.call(arithmetic.multiply, along, ratio))
    floor = e.named(e.call(math.floor, at))
    low = e.named(e.call(arithmetic.minimum, e.call(cast, floor, dtype=int64), last))
    after = e.call(arithmetic.add, low, e.number(1, int64))
    high = e.call(arithmetic.minimum, after, last)
    first = e.named(e.call(gathering.index_select, x, low, dim=dim))
    second = e.call(gathering.index_select, x, high, dim=dim)
    weight = e.call(cast, e.call(arithmetic.subtract, at, floor), dtype=dtype)
    if dim == 2:
        weight = e.call(view.unsqueeze, weight, dim=1)
    step = e.call(arithmetic.multiply, e.call(arithmetic.subtract, second, first), weight)
    return e.call(arithmetic.add, first, step)


def _upsampling(e: Emit, x: Expr, *, scale_h: float, scale_w: float, **how: Any) -> Expr:
    return upsampled(e, x, (scale_h, scale_w), **how)


UPSAMPLING: Final = {
    "layout": Attribute(word(*LAYOUTS[2]), LAYOUTS[2][0]),
    "method": Attribute(word("nearest_neighbor", "bilinear", "bicubic"), "nearest_neighbor"),
    "align_corners": Attribute(attributes.flag, default=False),
}
"""How images become larger."""

RESIZING: Final = (
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
        name="nn.upsampling",
        operands=("data",),
        attributes={
            "scale_h": Attribute(attributes.number, 1.0),
            "scale_w": Attribute(attributes.number, 1.0),
            **UPSAMPLING,
        },
        build=_upsampling,
        needs_types=always,
    ),
)
