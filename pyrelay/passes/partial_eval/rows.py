"""Lists of tensors under partial evaluation: one of known length is stacked as a tuple is, and a
tensor of few rows is a list that is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...ir.block_builder import BlockBuilder
from ...ir.dims import Dim
from ...ir.expr import Call, Constant, Constructor, type_of
from ...ir.types import INT, AdtType, FnType, TensorType, TupleType
from ...operators.primitive.index import index
from ...operators.primitive.join import stack
from ...operators.primitive.rows import stack_rows, unstack
from .residual import Residual
from .values import Known, Made, Value

MAX_ROWS: Final = 64
"""How many rows of a tensor are written out as a list."""


def of_rows(
    residual: Residual, call: Call, operands: Sequence[Value], code: BlockBuilder
) -> Value | None:
    """Emit a call that stacks a list, or takes a tensor apart; None where it is another one, or the
    number of rows is not known."""
    if call.callee is stack_rows:
        return _stacked(residual, call, operands[0], code)
    return _unstacked(residual, call, code) if call.callee is unstack else None


def _stacked(residual: Residual, call: Call, listed: Value, code: BlockBuilder) -> Value | None:
    rows: list[Value] = []
    while isinstance(listed, Made) and len(listed.fields) == 2:
        head, listed = listed.fields
        rows.append(head)
    types = {type_of(row.atom) for row in rows}
    element = next(iter(types), None)
    if not isinstance(listed, Made) or len(types) != 1 or not isinstance(element, TensorType):
        return None
    dim = call.attrs["dim"] % (element.rank + 1)
    parts = residual.construct(None, rows, TupleType((element,) * len(rows)), call.span, code)
    shape = (*element.shape[:dim], Dim.of(len(rows)), *element.shape[dim:])
    ty = TensorType(shape, element.dtype)
    node = Call(stack, (parts.atom,), {"dim": dim}, ty=ty, span=call.span)
    return residual.bind("stack", node, code)


def _unstacked(residual: Residual, call: Call, code: BlockBuilder) -> Value | None:
    whole = call.args[0]
    ty, span = call.ty, call.span
    assert isinstance(whole.ty, TensorType)
    assert isinstance(ty, AdtType)
    dim = call.attrs["dim"] % whole.ty.rank
    count = whole.ty.shape[dim].constant
    element = ty.args[0]
    if count is None or count > MAX_ROWS or not isinstance(element, TensorType):
        return None
    spec = (*[("slice", None, None, None)] * dim, ("int", 0))
    rows: list[Value] = []
    for place in range(count):
        number = Known(Constant(place, INT, span=span))
        at = residual.construct(None, [number], TupleType((INT,)), span, code)
        node = Call(index, (whole, at.atom), {"spec": spec}, ty=element, span=span)
        rows.append(residual.bind("row", node, code))
    empty = Constructor(ty.name, "Nil", FnType((), ty), span=span)
    cons = Constructor(ty.name, "Cons", FnType((element, ty), ty), span=span)
    found = residual.construct(empty, [], ty, span, code)
    for row in reversed(rows):
        found = residual.construct(cons, [row, found], ty, span, code)
    return found
