"""Pooling along one dim and along three, by the pools of images: a row is an image of height 1, and
a window over a volume is one over its images, followed by one over what these gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import product
from ...ir.op import Op, Param, RuleCall, Sample, ShapeBehaviour, TensorSpec, attribute, operand
from ...ir.rules import floating
from ...ir.types import TensorType, Type, show
from ..declare import composite
from ..primitive import pool, view
from ..shared.window import pooled

if TYPE_CHECKING:
    from ..builder import Value

_LAYOUTS: Final = {1: "(batch, channels, length)", 3: "(batch, channels, depth, height, width)"}


def _pool(
    name: str,
    n: int,
    doc: str,
    body: Callable[..., Value],
    extra: tuple[Param, ...],
    samples: Iterable[Sample],
) -> Op:
    """Return the pool over `n` dims that torch has under a name."""

    def type_rule(call: RuleCall) -> Type:
        source = floating(call, 0)
        if source.rank not in (n + 1, n + 2):
            call.clash(f"`{name}` takes a tensor {_LAYOUTS[n]}, not {show(source)}", 0)
        return TensorType(pooled(call, source.shape, n), source.dtype)

    window = kinds.at_least(1, kinds.each_of(n))
    return composite(
        name=name,
        doc=doc,
        params=(
            operand("input"),
            attribute("kernel_size", convert=window),
            attribute("stride", None, kinds.optional(window)),
            attribute("padding", 0, kinds.at_least(0, kinds.each_of(n))),
            *extra,
        ),
        type_rule=type_rule,
        body=body,
        torch=lambda torch, x, *attrs: getattr(torch.nn.functional, name)(x, *attrs),
        torch_name=f"nn.functional.{name}",
        shape=ShapeBehaviour.FEATURE_BATCHED,
        samples=lambda: samples,
    )


def _on_rows(pool2d: Op) -> Callable[..., Value]:
    """Return a pool of rows from that of images."""
    ones = {"kernel_size": 1, "stride": 1, "dilation": 1, "padding": 0}

    def body(x: Value, **attrs: Any) -> Value:
        full = {**attrs, "stride": attrs["stride"] or attrs["kernel_size"]}
        flat = {k: (ones[k], *v) if k in ones else v for k, v in full.items()}
        return view.squeeze(pool2d(x.unsqueeze(-2), **flat), dim=-2)

    return body


def _on_volumes(pool2d: Op) -> Callable[..., Value]:
    """Return a pool of volumes from that of images."""
    ones = {"kernel_size": 1, "stride": 1, "dilation": 1, "padding": 0}

    def body(x: Value, *, divisor_override: Any = None, **attrs: Any) -> Value:
        full = {**attrs, "stride": attrs["stride"] or attrs["kernel_size"]}
        across = {k: v[1:] if k in ones else v for k, v in full.items()}
        along = {k: (v[0], ones[k]) if k in ones else v for k, v in full.items()}
        if divisor_override is not None:
            across["divisor_override"], along["divisor_override"] = 1, divisor_override
        first, inner = x.shape[0], product(x.shape[1:-3])
        images = pool2d(x.reshape(first, inner * x.shape[-3], *x.shape[-2:]), **across)
        places = product(images.shape[-2:])
        rows = pool2d(images.reshape(first, inner, x.shape[-3], places), **along)
        return rows.reshape(*x.shape[:-3], rows.shape[-2], *images.shape[-2:])

    return body


_ROW: Final = TensorSpec((2, 3, 7))
_ROWS: Final = (
    Sample((_ROW,), {"kernel_size": 2}),
    Sample((TensorSpec((3, 7)),), {"kernel_size": 2}),
    Sample((TensorSpec((0, 3, 7)),), {"kernel_size": 2}),
    Sample((TensorSpec((2, 3, 7), contiguous=False),), {"kernel_size": 2}),
)
_VOLUME: Final = TensorSpec((2, 2, 5, 4, 6))
_VOLUMES: Final = (
    Sample((_VOLUME,), {"kernel_size": 2}),
    Sample((_VOLUME,), {"kernel_size": 2, "stride": (1, 2, 3), "ceil_mode": True}),
    Sample((TensorSpec((2, 5, 4, 6)),), {"kernel_size": (3, 1, 2)}),
    Sample((TensorSpec((0, 2, 5, 4, 6)),), {"kernel_size": 2}),
    Sample((TensorSpec((2, 2, 5, 4, 6), contiguous=False),), {"kernel_size": 2}),
)
_CEIL: Final = attribute("ceil_mode", False, kinds.flag)
_PADS: Final = attribute("count_include_pad", True, kinds.flag)

_LARGEST: Final = (
    "The largest element under each window; of equal ones the first gets the gradient."
)

max_pool1d: Final = _pool(
    "max_pool1d",
    1,
    _LARGEST,
    _on_rows(pool.max_pool2d),
    (attribute("dilation", 1, kinds.at_least(1, kinds.single)), _CEIL),
    (
        *_ROWS,
        Sample((_ROW,), {"kernel_size": 3, "stride": 1, "padding": 1}),
        Sample((_ROW,), {"kernel_size": 2, "dilation": 2, "ceil_mode": True}),
    ),
)

avg_pool1d: Final = _pool(
    "avg_pool1d",
    1,
    "The average of the elements under each window.",
    _on_rows(pool.avg_pool2d),
    (_CEIL, _PADS),
    (
        *_ROWS,
        Sample((_ROW,), {"kernel_size": 3, "stride": 2, "padding": 1}),
        Sample(
            (_ROW,), {"kernel_size": 2, "padding": 1, "count_include_pad": False, "ceil_mode": True}
        ),
    ),
)

max_pool3d: Final = _pool(
    "max_pool3d",
    3,
    _LARGEST,
    _on_volumes(pool.max_pool2d),
    (attribute("dilation", 1, kinds.at_least(1, kinds.triple)), _CEIL),
    (
        *_VOLUMES,
        Sample((_VOLUME,), {"kernel_size": 3, "stride": 1, "padding": (1, 0, 1)}),
        Sample((_VOLUME,), {"kernel_size": 2, "dilation": (2, 1, 3)}),
    ),
)

avg_pool3d: Final = _pool(
    "avg_pool3d",
    3,
    "The average of the elements under each window.",
    _on_volumes(pool.avg_pool2d),
    (_CEIL, _PADS, attribute("divisor_override", None, kinds.optional(pool.divisor))),
    (
        *_VOLUMES,
        Sample((_VOLUME,), {"kernel_size": 3, "stride": 2, "padding": (1, 0, 1)}),
        Sample((_VOLUME,), {"kernel_size": 2, "padding": 1, "count_include_pad": False}),
        Sample((_VOLUME,), {"kernel_size": 2, "divisor_override": 3}),
    ),
)
