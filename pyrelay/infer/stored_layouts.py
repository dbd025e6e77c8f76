"""Images in data, which lie in the order of their shape: data leave the program, and a type of
theirs says nothing of layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..diagnostics.catalogue.layouts import Conversion, LayoutInData
from ..ir.expr import Call, Constructor, Function, Var, type_of, use_of
from ..ir.layouts import PLAIN, layout_of
from ..ir.traverse import post_order
from ..ir.types import AdtType

if TYPE_CHECKING:
    from ..diagnostics.diagnostic import Problem


def stored_layouts(function: Function) -> Iterator[Problem]:
    """Return the mistakes of images that a typed function puts into data in another layout."""
    for node in post_order(function):
        if not isinstance(node, Call) or not isinstance(node.callee, Constructor):
            continue
        for arg in node.args:
            layout = layout_of(type_of(arg))
            if layout is not PLAIN and not isinstance(arg.ty, AdtType):
                text = arg.name if isinstance(arg, Var) else arg.span.text
                place = use_of(arg, node.span)
                way = Conversion(text, PLAIN.value, place)
                yield LayoutInData(place or arg.span, layout.value, way)
