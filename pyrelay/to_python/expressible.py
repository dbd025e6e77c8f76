"""Which values are single Python expressions: literals in place, and bodies without statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..ir.expr import (
    Call,
    Constant,
    Constructor,
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
from ..ir.module import AdtDef
from ..ir.op import HiddenKind, Op, Promotion
from ..ir.traverse import children, spine
from ..ir.types import (
    DEFAULT_DTYPE,
    INT,
    DType,
    SizeType,
    TensorType,
    TypeVar,
    dims,
    int64,
    subtypes,
)
from ..operators.host.failing import fail

_MOST_VALUES: Final = 40
"""How many values an expression computes at most: Python's parser takes no text that nests deep."""


def ends(value: Expr) -> bool:
    """Return whether evaluation of a value never returns, so that its type cannot be inferred."""
    is_fail = isinstance(value, Call) and value.callee is fail
    return is_fail or (isinstance(value, Match) and not value.clauses)


def gives_first(value: Expr) -> bool:
    """Return whether Python's call of an operator gives only the first field of its result: that of
    one that also gives new buffers, where there are none."""
    if not isinstance(value, Call) or not isinstance(value.callee, Op):
        return False
    if all(h.holder is not HiddenKind.BUFFER for h in value.callee.hidden):
        return False
    return not value.attrs.get("training")


def is_plain(constant: Constant) -> bool:
    """Return whether a literal alone has the type of the constant."""
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
    """Return whether a literal means this constant: alone, or as an operand of a call, where it
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


def leaves_open(value: Expr, adts: Mapping[str, AdtDef]) -> bool:
    """Return whether a value is made by a constructor whose fields do not determine its type."""
    if not isinstance(value, Call) or not isinstance(value.callee, Constructor):
        return False
    adt = adts[value.callee.adt]
    fields = adt.constructor(value.callee.name).fields
    determined = {part.name for ty in fields for part in subtypes(ty) if isinstance(part, TypeVar)}
    determined |= {d.name for ty in fields for d in dims(ty) if d.name is not None}
    return any(p.name not in determined for p in adt.type_params)


def is_one_expression(body: Expr, adts: Mapping[str, AdtDef]) -> bool:
    """Return whether a body in A-normal form is an expression of Python that the program decides:
    each value it names is used once, in the order in which they are made, and has a type that is
    inferred."""
    blocks, end = spine(body)
    if sum(len(block.bindings) for block in blocks) > _MOST_VALUES:
        return False
    waiting: list[Var] = []
    own = {b.var for block in blocks for b in block.bindings}
    for binding in (b for block in blocks for b in block.bindings):
        value = binding.value
        if not isinstance(value, Call | Tuple | TupleGet | RefCreate | RefRead | Transform):
            return False
        if leaves_open(value, adts) or gives_first(value) or (ends(value) and binding.var != end):
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
