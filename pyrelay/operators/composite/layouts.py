"""The layout of images as an operator, which a pass writes out as a permutation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.declaration.layouts import Layouts
from ...ir.layouts import layout_of
from ...ir.op import (
    Library,
    Linear,
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
from ...ir.types import Layout, Type, show
from ..builder import Value


def _to_layout_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    if source.rank < 3:
        message = f"`to_layout` takes images (..., channels, height, width), not {show(source)}"
        call.clash(message, 0)
    return replace(source, layout=Layout(call.attrs["layout"]))


def _unchanged(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value | None:
    """Return images that are in the layout already."""
    return args[0] if layout_of(args[0].ty).value == attrs["layout"] else None


def _to_layout_grad(p: Pullback) -> tuple[Value]:
    return (to_layout(p.g, layout=layout_of(p.args[0].ty).value),)


def _to_layout_samples() -> Iterable[Sample]:
    for layout in Layout:
        yield Sample((TensorSpec((2, 3, 4, 5)),), {"layout": layout.value})
    yield Sample((TensorSpec((3, 4, 5)),), {"layout": "NHWC"})
    yield Sample((TensorSpec((0, 3, 4, 5)),), {"layout": "NHWC"})
    yield Sample((TensorSpec((2, 3, 4, 5), contiguous=False),), {"layout": "NHWC"})


to_layout: Final = Op(
    name="to_layout",
    doc="The same images, (..., channels, height, width), with their elements in another order in "
    "memory: `NCHW`, that of the shape, or `NHWC`, where the channels of a pixel lie together.",
    params=(
        operand("input"),
        attribute("layout", convert=kinds.word(*(layout.value for layout in Layout))),
    ),
    type_rule=_to_layout_type,
    shape=ShapeBehaviour.IDENTITY,
    layouts=Layouts.ANY,
    # The elements are the same; a pass writes the order out (`passes/normalise/write_layouts.py`).
    lowering=Library(lambda torch, x, layout: x.clone(), is_fresh=True),
    body=MadeOf(_unchanged),
    push=Linear(("input",)),
    grad=_to_layout_grad,
    torch_name=None,
    samples=_to_layout_samples,
)
