"""Each channel of each element of a batch, normalised by its own statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Expansion,
    Hidden,
    Holder,
    Init,
    Library,
    MadeOf,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import expect, floating
from ...ir.types import TensorType, Type, show
from ..matrices.products import parameter_dtype
from ..shared.operands import is_given
from .norm import group_norm

if TYPE_CHECKING:
    from ..builder import Value


def _images(call: RuleCall) -> TensorType:
    source = floating(call, 0)
    if source.rank < 3:
        wanted = "a tensor (batch, channels, places, ...)"
        call.clash(f"`instance_norm` takes {wanted}, not {show(source)}", 0)
    return source


def _per_channel(call: RuleCall) -> TensorType:
    return TensorType((_images(call).shape[1],), parameter_dtype(call))


def _instance_norm_type(call: RuleCall) -> Type:
    source = _images(call)
    vector = TensorType((source.shape[1],), source.dtype)
    for place in (1, 2):
        if call.given(place):
            name = call.operand_name(place)
            expect(call, place, vector, f"`instance_norm` takes one {name} per channel")
    return source


def _instance_norm_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, weight, bias = args
    factors = [v if is_given(v) else None for v in (weight, bias)]
    return group_norm(x, *factors, num_groups=x.shape[1], eps=attrs["eps"])


def _instance_norm(torch: Any, x: Any, weight: Any, bias: Any, eps: float) -> Any:
    return torch.nn.functional.instance_norm(x, weight=weight, bias=bias, eps=eps)


instance_norm: Final = Op(
    name="instance_norm",
    doc="Each channel (dim 1) of each element of the batch, normalised by its own statistics.",
    params=(
        operand("input"),
        optional("weight"),
        optional("bias"),
        attribute("eps", 1e-5, kinds.real),
    ),
    type_rule=_instance_norm_type,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_instance_norm, is_fresh=True, fused=MadeOf(_instance_norm_code)),
    grad=Expansion(_instance_norm_code),
    hidden=(
        Hidden("weight", Holder.PARAMETER, Init.ONES, _per_channel, only_if="affine"),
        Hidden("bias", Holder.PARAMETER, Init.ZEROS, _per_channel, only_if="affine"),
    ),
    hyper=(attribute("affine", default=False, convert=kinds.flag),),
    torch_name="nn.functional.instance_norm",
    samples=lambda: (
        Sample((TensorSpec((2, 3, 4)), TensorSpec((3,)), TensorSpec((3,)))),
        Sample((TensorSpec((2, 3, 4, 5)), None, None), {"eps": 0.1}),
        Sample((TensorSpec((2, 2, 2, 3)), TensorSpec((2,)), None)),
        Sample((TensorSpec((2, 3, 4), contiguous=False), None, None)),
    ),
)
