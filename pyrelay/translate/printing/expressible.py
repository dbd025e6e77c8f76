"""What is one Python expression: literals where they stand, and bodies without statements."""

from __future__ import annotations

from ...ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Match,
    RefCreate,
    RefRead,
    TensorData,
    Transform,
    Tuple,
    TupleGet,
    Var,
)
from ...ir.op import Op, Promotion
from ...ir.traverse import children, spine
from ...ir.types import DEFAULT_DTYPE, INT, DType, SizeType, TensorType, int64


def is_plain(constant: Constant) -> bool:
    """Tell whether a literal alone has the type of the constant."""
    if isinstance(constant.value, TensorData | str):
        return True
    match constant.ty:
        case SizeType() | None:
            return True
        case TensorType((), DType() as dtype):  # an integer alone is a size
            return DEFAULT_DTYPE[dtype.kind] == dtype and dtype != int64
        case _:
            return False


def fits(constant: Constant, call: Call | None) -> bool:
    """Tell whether a literal means this constant: alone, or as an operand of a call, where it
    stands beside tensors."""
    if is_plain(constant):
        return True
    if call is None:
        return False
    if not isinstance(call.callee, Op):
        return constant.ty == INT  # a parameter is annotated, so a literal is no size there
    if call.callee.promotion is Promotion.NONE:
        return False
    met = [a.ty for a in call.args if not isinstance(a, Constant)]
    ty = constant.ty
    assert isinstance(ty, TensorType)
    return any(isinstance(m, TensorType) and m.dtype == ty.dtype for m in met)


def is_one_expression(body: Expr) -> bool:
    """Tell whether a body in A-normal form is an expression of Python that the program decides:
    each value it names is used once, in the order in which they are made."""
    blocks, end = spine(body)
    waiting: list[Var] = []
    own = {b.var for block in blocks for b in block.bindings}
    for binding in (b for block in blocks for b in block.bindings):
        value = binding.value
        if not isinstance(value, Call | Tuple | TupleGet | RefCreate | RefRead | Transform):
            return False
        call = value if isinstance(value, Call) else None
        inside = children(value)
        if any(isinstance(a, Constant) and not fits(a, call) for a in inside):
            return False
        wanted = [a for a in inside if a in own]
        if waiting[len(waiting) - len(wanted) :] != wanted:
            return False
        del waiting[len(waiting) - len(wanted) :]
        waiting.append(binding.var)
    if isinstance(end, Constant | If | Match | Function):
        return False
    return waiting == [a for a in (end, *children(end)) if a in own]
