"""Pooling along one dim: a row is an image of height 1, and so are the derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Expansion,
    Library,
    MadeOf,
    Op,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import floating
from ...ir.types import TensorType, Type, show
from ..primitive import pool, view
from ..shared.window import pooled

if TYPE_CHECKING:
    from ..builder import Value


def _pool_type(call: RuleCall) -> Type:
    source = floating(call, 0)
    if source.rank not in (2, 3):
        call.clash(
            f"`{call.op.name}` takes a tensor (batch, channels, length), not {show(source)}", 0
        )
    return TensorType(pooled(call, source.shape, 1), source.dtype)


def _flat(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes for an image of height 1."""
    ones = {"kernel_size": 1, "stride": 1, "dilation": 1, "padding": 0}
    full = {**attrs, "stride": attrs["stride"] or attrs["kernel_size"]}
    return {k: (ones[k], *v) if k in ones else v for k, v in full.items()}


def _on_images(pool2d: Op, args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    return view.squeeze(pool2d(args[0].unsqueeze(-2), **_flat(attrs)), dim=-2)


def _max_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    found = pool.max_pool2d_with_indices(args[0].unsqueeze(-2), **_flat(attrs))
    return view.squeeze(found[0], dim=-2)


def _max_pool1d(torch: Any, x: Any, *attrs: Any) -> Any:
    return torch.nn.functional.max_pool1d(x, *attrs)


max_pool1d: Final = Op(
    name="max_pool1d",
    doc="The largest element under each window; of equal ones the first gets the gradient.",
    params=(
        operand("input"),
        attribute("kernel_size", convert=kinds.at_least(1, kinds.single)),
        attribute("stride", None, kinds.optional(kinds.at_least(1, kinds.single))),
        attribute("padding", 0, kinds.at_least(0, kinds.single)),
        attribute("dilation", 1, kinds.at_least(1, kinds.single)),
        attribute("ceil_mode", False, kinds.flag),
    ),
    type_rule=_pool_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Library(_max_pool1d, fused=MadeOf(lambda *call: _on_images(pool.max_pool2d, *call))),
    grad=Expansion(_max_code),
    torch_name="nn.functional.max_pool1d",
    samples=lambda: (
        Sample((TensorSpec((2, 3, 7)),), {"kernel_size": 2}),
        Sample((TensorSpec((2, 3, 7)),), {"kernel_size": 3, "stride": 1, "padding": 1}),
        Sample((TensorSpec((2, 3, 7)),), {"kernel_size": 2, "dilation": 2, "ceil_mode": True}),
        Sample((TensorSpec((3, 7)),), {"kernel_size": 2}),
        Sample((TensorSpec((0, 3, 7)),), {"kernel_size": 2}),
        Sample((TensorSpec((2, 3, 7), contiguous=False),), {"kernel_size": 2}),
    ),
)


def _avg_grad(p: Pullback) -> tuple[Value]:
    x = p.args[0]
    size = x.unsqueeze(-2).shape
    spread = pool.avg_pool2d_backward(p.g.unsqueeze(-2), input_size=size, **_flat(p.attrs))
    return (spread.reshape(*x.shape),)


def _avg_pool1d(torch: Any, x: Any, *attrs: Any) -> Any:
    return torch.nn.functional.avg_pool1d(x, *attrs)


avg_pool1d: Final = Op(
    name="avg_pool1d",
    doc="The average of the elements under each window.",
    params=(
        operand("input"),
        attribute("kernel_size", convert=kinds.at_least(1, kinds.single)),
        attribute("stride", None, kinds.optional(kinds.at_least(1, kinds.single))),
        attribute("padding", 0, kinds.at_least(0, kinds.single)),
        attribute("ceil_mode", False, kinds.flag),
        attribute("count_include_pad", True, kinds.flag),
    ),
    type_rule=_pool_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Library(_avg_pool1d, fused=MadeOf(lambda *call: _on_images(pool.avg_pool2d, *call))),
    grad=_avg_grad,
    torch_name="nn.functional.avg_pool1d",
    samples=lambda: (
        Sample((TensorSpec((2, 3, 7)),), {"kernel_size": 2}),
        Sample((TensorSpec((2, 3, 7)),), {"kernel_size": 3, "stride": 2, "padding": 1}),
        Sample(
            (TensorSpec((2, 3, 7)),),
            {"kernel_size": 2, "padding": 1, "count_include_pad": False, "ceil_mode": True},
        ),
        Sample((TensorSpec((3, 7)),), {"kernel_size": 2}),
        Sample((TensorSpec((0, 3, 7)),), {"kernel_size": 2}),
        Sample((TensorSpec((2, 3, 7), contiguous=False),), {"kernel_size": 2}),
    ),
)
