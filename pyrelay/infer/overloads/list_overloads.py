"""Overloads on lists: methods, conditions, `xs * n`, unpacking, and the order in sorted lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...ir.calls.attributes import bind_attrs
from ...ir.expr import (
    BindPattern,
    Call,
    Clause,
    Constant,
    ConstructorPattern,
    Expr,
    Function,
    If,
    Match,
    Pattern,
    Tuple,
    TupleGet,
    Var,
    Wildcard,
)
from ...ir.op import Clash
from ...ir.types import (
    BOOL,
    DType,
    DTypeKind,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    show,
)
from ...operators.host.failing import fail
from ...operators.host.loop import as_tensor, index_of, is_before
from ...operators.primitive.compare import equal, less, not_equal
from ...operators.primitive.index import index
from ...operators.primitive.join import stack
from ...prelude.library import LIST, element_of
from ..operators import OperatorCall, Reading
from .membership import counted
from .sites import ReadCall

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ...ir.module import AdtDef
    from ..solver import Solver


def found_in_list(call: OperatorCall, solver: Solver, adts: Mapping[str, AdtDef]) -> Reading:
    """Read `xs.index(x)` and `xs.count(x)`."""
    at = ReadCall(call, solver)
    is_index = call.op is index_of
    name = "index" if is_index else "count"
    return Reading(at.operands, counted(at, adts, name, stops=is_index))


def multiplied(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading | None:
    """Read `xs * n` and `n * xs` of a list."""
    are_lists = [element_of(solver.shallow(ty)) is not None for ty in call.types]
    if not any(are_lists):
        return None
    at = ReadCall(call, solver)
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
    at = ReadCall(call, solver)
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
    """Read a value that is assigned to several names: a tuple, a list, or a tensor of known first
    size."""
    count = bind_attrs(call.op, call.call.attrs)["count"]
    ty = solver.awaited(call.types[0])
    at = ReadCall(call, solver)
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


def tensor_of(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading:
    """Read `relay.tensor` of a value: a list or a tuple is stacked, after what is in it."""
    ty = solver.awaited(call.types[0])
    at = ReadCall(call, solver)
    value = at.operand(0)
    if isinstance(ty, TupleType) and ty.fields:
        fields = (TupleGet(value, place, span=at.span) for place in range(len(ty.fields)))
        rows: Expr = Tuple(tuple(at.call(as_tensor, f) for f in fields), span=at.span)
    elif element_of(ty) is not None:
        row = Var("row", span=at.span)
        rows = at.call("map", Function((row,), at.call(as_tensor, row), span=at.span), value)
    else:
        return Reading(at.operands, value)
    return Reading(at.operands, at.call(stack, rows, dim=0))


def order(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading:
    """Read whether a value comes before another."""
    at = ReadCall(call, solver)
    pair = (at.operand(0), at.operand(1))
    return Reading(at.operands, comes_before(pair, call.types[0], solver, at.span))


def elements_of(items: Expr, count: int, span: Span) -> Expr:
    """Return the elements of a list as a tuple; the program stops where it has more or fewer."""
    parts = tuple(Var("element", span=span) for _ in range(count))
    whole = _list_of([BindPattern(part, span=span) for part in parts], span)
    found = [Clause(whole, Tuple(parts, span=span))]
    for fewer in range(count):
        pattern = _list_of([Wildcard(span=span)] * fewer, span)
        found.append(Clause(pattern, _failure(str(fewer), fewer, count, span)))
    found.append(Clause(Wildcard(span=span), _failure(f"more than {count}", count, count, span)))
    return Match(items, tuple(found), span=span)


def _list_of(elements: Sequence[Pattern], span: Span) -> Pattern:
    """Return the pattern of a list of as many elements."""
    pattern: Pattern = ConstructorPattern(LIST, "Nil", (), span=span)
    for element in reversed(elements):
        pattern = ConstructorPattern(LIST, "Cons", (element, pattern), span=span)
    return pattern


def _failure(length: str, elements: int, names: int, span: Span) -> Expr:
    """Return the code that stops the program at a list of another length."""
    noun = "element" if elements == 1 else "elements"
    each = "name" if names == 1 else "names"
    message = f"a list of {length} {noun} cannot be unpacked into {names} {each}"
    return Call(fail, (), {"message": message}, span=span)


def comes_before(pair: tuple[Expr, Expr], ty: Type, solver: Solver, span: Span) -> Expr:
    """Return whether the first of two values of a type comes before the second: the smaller number,
    or the tuple whose first different field does. Raises Stuck and Clash."""
    found = solver.resolve(solver.known(ty))
    match found:
        case SizeType():
            return Call(less, pair, {}, span=span)
        case TensorType((), _) if found != BOOL:
            return Call(less, pair, {}, span=span)
        case TupleType(fields) if fields:
            return _lexicographic(pair, len(fields), span)
        case _:
            raise Clash(
                f"values of {show(found)} have no order",
                help="sort by numbers, or by tuples of them: `sorted(xs, key=f)`",
            )


def _lexicographic(pair: tuple[Expr, Expr], count: int, span: Span) -> Expr:
    found: Expr = Constant(False, span=span)
    for place in reversed(range(count)):
        first, second = (tuple(TupleGet(side, place, span=span) for side in pair) for _ in range(2))
        before = Call(is_before, first, {}, span=span)
        if place == count - 1:
            found = before
            continue
        same = Call(equal, second, {}, span=span)
        otherwise = If(same, found, Constant(False, span=span), span=span)
        found = If(before, Constant(True, span=span), otherwise, span=span)
    return found
