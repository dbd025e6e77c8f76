"""Overloads on lists: methods, conditions, `xs * n` and unpacking; and
what comes before what in a sorted list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...ir.calls.attributes import bind_attrs
from ...ir.expr import Constant, Tuple, Var
from ...ir.op import Clash
from ...ir.types import (
    DType,
    DTypeKind,
    SizeType,
    StrType,
    TensorType,
    Type,
    show,
)
from ...operators.host.loop import index_of
from ...operators.primitive.compare import not_equal
from ...operators.primitive.index import index
from ...prelude.library import element_of
from ..operators import OperatorCall, Reading
from .list_parts import comes_before, elements_of
from .membership import first_position, occurrences
from .sites import Site

if TYPE_CHECKING:
    from ...ir.module import AdtDef
    from ..solver import Solver


def found_in_list(call: OperatorCall, solver: Solver, adts: Mapping[str, AdtDef]) -> Reading:
    """Read `xs.index(x)` and `xs.count(x)`."""
    at = Site(call, solver)
    pair, types = (at.operand(0), at.operand(1)), (call.types[0], call.types[1])
    look = first_position if call.op is index_of else occurrences
    return Reading(at.operands, look(pair, types, solver, adts, at.span))


def multiplied(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading | None:
    """Read `xs * n` and `n * xs` of a list."""
    are_lists = [element_of(solver.shallow(ty)) is not None for ty in call.types]
    if not any(are_lists):
        return None
    at = Site(call, solver)
    items = 0 if are_lists[0] else 1
    count = solver.known(call.types[1 - items])
    dtype = solver.resolve_dtype(count.dtype) if isinstance(count, TensorType) else None
    kind = dtype.kind if isinstance(dtype, DType) else dtype and dtype.weak
    if not isinstance(count, SizeType) and (_is_tensor(count) or kind is not DTypeKind.INT):
        raise Clash(
            "`*` of a list is the list a number of times",
            labels={items: "this is a list", 1 - items: f"this is {show(solver.resolve(count))}"},
            help="do it to each element, `[x * y for x in xs]`, or to the tensor `relay.stack(xs)`",
        )
    body = at.call("times", at.operand(items), at.operand(1 - items))
    return Reading(at.operands, body)


def _is_tensor(ty: Type) -> bool:
    return not isinstance(ty, TensorType) or bool(ty.shape)


def truth_of(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading:
    """Read a condition: a bool, a number that is not 0, or a list or a string that is not empty."""
    ty = solver.awaited(call.types[0])
    at = Site(call, solver)
    value = at.operand(0)
    empty = _empty(ty, solver)
    if empty is not None:
        zero = Constant(empty, span=at.span)
        return Reading(at.operands, at.call(not_equal, value, zero))
    if element_of(ty) is None:
        return Reading(at.operands, value)
    yes, no = Constant(True, span=at.span), Constant(False, span=at.span)
    return Reading(at.operands, at.split(value, lambda *_: yes, no))


def _empty(ty: Type, solver: Solver) -> int | str | None:
    """Return the number or the string that does not hold as a condition; None of other types."""
    match ty:
        case SizeType():
            return 0
        case StrType():
            return ""
        case TensorType(dtype=dtype) if ty.rank == 0:
            found = solver.resolve_dtype(dtype)
            kind = found.kind if isinstance(found, DType) else found.weak
            return 0 if kind in (DTypeKind.INT, DTypeKind.FLOAT) else None
        case _:
            return None


def unpacked_elements(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading:
    """Read what is assigned to several names: a tuple, a list, or a tensor of known first size."""
    count = bind_attrs(call.op, call.call.attrs)["count"]
    ty = solver.awaited(call.types[0])
    at = Site(call, solver)
    value = Var("fields", span=call.call.args[0].span)
    at.operands[value] = call.call.args[0]
    if element_of(ty) is not None:
        return Reading(at.operands, elements_of(value, count, at.span))
    first = solver.resolve_dim(ty.shape[0]) if isinstance(ty, TensorType) and ty.shape else None
    if first is None or first.constant != count:
        return Reading(at.operands, value)
    parts = tuple(
        at.call(index, value, Tuple((at.number(i),), span=at.span), spec=(("int", 0),))
        for i in range(count)
    )
    return Reading(at.operands, Tuple(parts, span=at.span))


def order(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading:
    """Read whether a value comes before another."""
    at = Site(call, solver)
    pair = (at.operand(0), at.operand(1))
    return Reading(at.operands, comes_before(pair, call.types[0], solver, at.span))
