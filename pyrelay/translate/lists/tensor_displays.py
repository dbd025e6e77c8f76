"""`relay.tensor([[1.0, x], [y, 2.0]])`: a tensor from numbers written out in rows."""

from __future__ import annotations

import ast
from typing import Final

from ...diagnostics.catalogue.language import Unsupported
from ...ir.constant import placeholder
from ...ir.expr import Call, Expr, Tuple
from ...ir.op import Param
from ...ir.traverse import Steps
from ...operators.host.loop import as_tensor
from ...operators.primitive.compare import cast
from ...operators.primitive.create import zeros
from ...operators.primitive.join import stack
from ..calls.arguments import Callee, Slot, bind_arguments
from ..calls.attributes import attribute_value
from ..program.context import Context, in_turn

_TENSOR: Final = Callee(
    "tensor",
    (Slot("data", required=True), Slot("dtype", required=False)),
    "tensor(data, dtype=None)",
)
_DTYPE: Final[Param] = next(p for p in cast.attributes if p.name == "dtype")


def tensor(cx: Context, node: ast.Call) -> Steps[Expr]:
    """Translate `relay.tensor(data, dtype=None)`.

    A display of displays becomes stacks of its rows, so elements may be computed, and rows of
    different lengths are the type error of `stack`. Any other list or tuple is stacked as it is.
    """
    span = cx.span(node)
    bound = bind_arguments(cx, node, _TENSOR)
    if bound is None:
        return placeholder(span)
    dtype = None
    if "dtype" in bound:
        dtype = yield attribute_value(cx, bound["dtype"], _DTYPE, "tensor")
    found = yield _rows(cx, bound["data"], dtype)
    return found if dtype is None else Call(cast, (found,), {"dtype": dtype}, span=span)


def _rows(cx: Context, node: ast.expr, dtype: object) -> Steps[Expr]:
    """Translate nested displays to nested stacks, other expressions as they are."""
    span = cx.span(node)
    if not isinstance(node, ast.List | ast.Tuple):
        value = yield cx.expression(node)
        return value if isinstance(node, ast.Constant) else Call(as_tensor, (value,), span=span)
    starred = next((e for e in node.elts if isinstance(e, ast.Starred)), None)
    if starred is not None:
        instead = "write the list first, `xs = [a, *rest]`, then `relay.stack(xs)`"
        return cx.refuse(Unsupported(cx.span(starred), "`*` in `relay.tensor`", instead))
    if not node.elts:
        return Call(zeros, (), {"size": (0,), "dtype": dtype}, span=span)
    rows = yield in_turn(_rows(cx, element, dtype) for element in node.elts)
    return Call(stack, (Tuple(tuple(rows), span=span),), {"dim": 0}, span=span)
