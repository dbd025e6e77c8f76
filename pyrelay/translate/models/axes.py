"""The axes of `relay.vmap(f, in_axes=0, out_axes=0)` in compiled code."""

from __future__ import annotations

import ast
from typing import Any, Final, TypeGuard, cast

from ...diagnostics.catalogue.signatures import BadValue
from ...ir.expr import Batching
from ...ir.transforms import Axes
from ..calls.arguments import Slot
from ..calls.attributes import static_argument
from ..program.context import Context
from ..source.syntax import is_none

SLOTS: Final = (
    Slot("f", required=True),
    Slot("in_axes", required=False),
    Slot("out_axes", required=False),
)
"""The parameters of `relay.vmap`."""

FORM: Final = "vmap(f, in_axes=0, out_axes=0)"
"""How it is called."""


def batching(cx: Context, bound: dict[str, ast.expr]) -> Batching:
    """Return the options that a call writes; other values are reported."""
    found = {n: _axes(cx, n, bound[n]) for n in ("in_axes", "out_axes") if n in bound}
    return Batching(**found)


def is_axes(value: object) -> TypeGuard[Axes]:
    """Return whether a value names axes: an integer, None, or a tuple of such."""
    if isinstance(value, tuple):
        return all(map(is_axes, cast("tuple[object, ...]", value)))
    return value is None or type(value) is int


def _axes(cx: Context, name: str, node: ast.expr) -> Axes:
    if is_none(node):
        return None
    value: Any = static_argument(cx, node, f"`{name}`", f"`{name}=(0, None)`")
    if value is None or is_axes(value):
        return value
    why = "an axis is an integer, None, or a tuple of such"
    cx.program.report(BadValue(cx.span(node), f"`{name}` of `vmap` cannot be {value!r}", why))
    return 0
