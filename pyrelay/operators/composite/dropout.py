"""Dropout: elements set to zero at random while a model trains."""

from __future__ import annotations

from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    MODE,
    Elementwise,
    Hidden,
    HiddenKind,
    Init,
    Layouts,
    Library,
    Linear,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import floating
from ...ir.types import Type
from ..primitive.random import KEY, KEY_SPEC, check_key
from ..shared import drawing, philox


def _dropout_type(call: RuleCall) -> Type:
    source, p = floating(call, 0), call.attrs["p"]
    if not 0.0 <= p <= 1.0:
        call.clash(f"`dropout` takes a chance between 0 and 1, not {p}")
    if call.given(1):
        check_key(call, 1)
    elif call.attrs["training"]:
        call.clash(
            "`dropout` needs a random key to train",
            help="call it inside a @relay_model, or pass key=relay.random.key(seed)",
        )
    return source


def _dropout(torch: Any, x: Any, key: Any, p: float, training: bool) -> Any:
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return torch.zeros_like(x)
    kept = philox.words(torch, key, x.numel()).reshape(x.shape) >= round(p * 2**32)
    return torch.where(kept, x * (1.0 / (1.0 - p)), 0.0)


dropout: Final = Op(
    name="dropout",
    doc="Elements set to 0 with chance `p` and the others scaled to keep the mean, in training.",
    params=(
        operand("input"),
        optional("key"),
        attribute("p", 0.5, kinds.real),
        attribute("training", MODE, kinds.flag),
    ),
    type_rule=_dropout_type,
    shape=ShapeBehaviour.IDENTITY,
    layouts=Layouts.IMAGES,
    lowering=Library(_dropout, fused=Elementwise(drawing.dropped)),
    # Linear in its input: the same key gives the same mask.
    push=Linear(("input",)),
    grad=lambda p: (dropout(p.g, p.args[1], p=p.attrs["p"], training=p.attrs["training"]), None),
    hidden=(Hidden("key", HiddenKind.KEY, Init.NORMAL, lambda call: KEY),),
    torch_name=None,
    samples=lambda: (
        Sample((TensorSpec((3, 4)), KEY_SPEC), {"training": True}),
        Sample((TensorSpec((3, 4)), KEY_SPEC), {"training": True, "p": 0.1}),
        Sample((TensorSpec((3, 4)), KEY_SPEC), {"training": True, "p": 1.0}),
        Sample((TensorSpec((3, 4)), None)),
        Sample((TensorSpec((0, 4)), KEY_SPEC), {"training": True}),
        Sample((TensorSpec((4, 3), contiguous=False), KEY_SPEC), {"training": True}),
    ),
)
