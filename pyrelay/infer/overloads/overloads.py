"""Syntax that means one thing of tensors and another of lists: `x[i]`, `len(x)`, `x + y`, loops.

Once the operand's type is known, a call of such an operator is *read*: its meaning, written in the
language itself, takes its place. Lists are read as functions of the prelude.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ...diagnostics.source import Construct
from ...ir.dims import Dim
from ...ir.expr import Call, Constant, Expr, Function, Tuple, Var
from ...ir.op import Clash, Op, Stuck
from ...ir.own_sizes import has_own_sizes, opened
from ...ir.types import (
    BOOL,
    INT,
    AdtType,
    DTypeHole,
    DTypeKind,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    int64,
    show,
)
from ...operators.host.conversions import to_bool
from ...operators.host.field import field
from ...operators.host.loop import (
    as_tensor,
    backwards,
    bound,
    by_type,
    contains,
    count_of,
    element_at,
    equal_values,
    first_place,
    gradient_for,
    index_of,
    is_before,
    is_inside,
    map_leaves,
    next_place,
    relay_call,
    truth,
    unpacked,
)
from ...operators.host.sizes import dim_size
from ...operators.primitive.activation import stop_gradient
from ...operators.primitive.arithmetic import add, maximum, minimum, multiply
from ...operators.primitive.compare import cast, equal, less, logical_not, not_equal
from ...operators.primitive.extrema import amax, amin
from ...operators.primitive.index import index, set_at
from ...operators.primitive.join import stack
from ...operators.primitive.reduce import sum_
from ...operators.primitive.rows import stack_rows
from ...operators.primitive.view import flip
from ...prelude.library import element_of
from ...relay05.attributes import Refused
from ...relay05.imported import BadSignature, Emit
from ...relay05.table import SUPPORTED
from ..operators import OperatorCall, Reading
from ..records import chosen, read_field
from ..solver import Solver
from .equality import compared, is_data
from .filled import READERS as FILLED
from .filled import filled
from .list_overloads import (
    found_in_list,
    multiplied,
    order,
    tensor_of,
    truth_of,
    unpacked_elements,
)
from .membership import membership
from .sites import ReadCall, Reader, nothing
from .stop_gradient import stop_gradient_reading
from .tree_map import mapped
from .tuple_overloads import of_tuple
from .updates import gradient

if TYPE_CHECKING:
    from ...ir.module import AdtDef


def reading(call: OperatorCall, solver: Solver, adts: Mapping[str, AdtDef]) -> Reading | None:
    """Return the expression that an overloaded call resolves to; None if it resolves to the
    operator itself. Raises Stuck while the type that decides is unknown, and Clash."""
    if _needs_opening(call, solver):
        return _of_opened(call, solver)
    whole = _OF_CALLS.get(call.op)
    if whole is not None:
        return whole(call, solver, adts)
    on_list, on_tensor = _ON_LISTS.get(call.op), _ON_TENSORS.get(call.op)
    if on_list is None:
        return None
    ty = solver.shallow(call.types[0])
    if isinstance(ty, TypeHole) and on_tensor is not None:
        raise Stuck(ty)
    read = on_list if element_of(ty) is not None else on_tensor
    if isinstance(ty, TupleType):
        read = of_tuple(call) or on_tensor
    if read is None:
        return None
    site = ReadCall(call, solver)
    body = read(site)
    return Reading(site.operands, body)


def _needs_opening(call: OperatorCall, solver: Solver) -> bool:
    """Return whether an operand is a tensor with sizes of its own, or a tuple display with one."""
    if call.op in (by_type, map_leaves):  # their functions are not typed yet
        return False
    for value, ty in zip(call.call.args, map(solver.shallow, call.types), strict=False):
        is_display = isinstance(value, Tuple) and call.op is not unpacked
        parts = ty.fields if isinstance(ty, TupleType) and is_display else (ty,)
        if any(has_own_sizes(solver.shallow(part)) for part in parts):
            return True
    return False


def _of_opened(call: OperatorCall, solver: Solver) -> Reading:
    """Take the tensors out of operands that have sizes of their own."""
    at = ReadCall(call, solver)
    tensors: dict[Expr, tuple[Var, Type]] = {}

    def taken(value: Expr, ty: Type) -> Expr:
        ty = solver.shallow(ty)
        if isinstance(ty, TupleType) and isinstance(value, Tuple):
            return replace(value, fields=tuple(map(taken, value.fields, ty.fields)))
        value = at.value(value)
        if not has_own_sizes(ty):
            return value
        name = value.name if isinstance(value, Var) else ""
        tensor, _ = tensors.setdefault(value, (Var(name or "tensor", span=at.span), ty))
        return tensor

    args = tuple(map(taken, call.call.args, call.types))
    attrs = {name: at.attribute(name) for name in at.attrs}
    body: Expr = Call(call.op, args, attrs, span=at.span)
    for value, (tensor, ty) in tensors.items():
        body = opened(value, tensor, ty, body)
    return Reading(at.operands, body)


def _field(call: OperatorCall, solver: Solver, adts: Mapping[str, AdtDef]) -> Reading:
    at = ReadCall(call, solver)
    found = read_field(call, at.operand(0), solver, adts)
    return Reading(at.operands, found)


def _chosen(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading:
    function = chosen(call.call, solver.shallow(call.types[1]))
    (var,) = function.params
    return Reading({var: call.call.args[1]}, function.body)


def _contains(call: OperatorCall, solver: Solver, adts: Mapping[str, AdtDef]) -> Reading:
    at = ReadCall(call, solver)
    return Reading(at.operands, membership(at, adts))


def _filled(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading | None:
    at = filled(call, solver)
    if at is None:
        return None
    body = FILLED[call.op](at)
    return Reading(at.operands, body)


def _of_relay(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading:
    """Expand a call of an operator of Relay, whose operands' types are known by now."""
    at = ReadCall(call, solver)
    name, (operands,) = at.attrs.get("operator"), call.call.args
    known, whole = SUPPORTED.get(str(name)), solver.shallow(call.types[0])
    if known is None or not isinstance(operands, Tuple) or not isinstance(whole, TupleType):
        raise Clash(f"there is no operator `{name}` of Relay with such operands")
    args = tuple(map(at.value, operands.fields))
    types = dict(zip(map(id, args), whole.fields, strict=True))
    emit = Emit(at.span, lambda operand: solver.resolve(types[id(operand)]))
    try:
        body = known.expanded(emit, args, dict(at.attrs.get("attributes", ())))
    except Refused as refused:
        raise Clash(f"Relay's `{name}` {refused.message}", help=refused.help) from None
    except (BadSignature, TypeError, ValueError) as error:
        raise Clash(str(error)) from None
    return Reading(at.operands, body)


def _tree_map(call: OperatorCall, solver: Solver, adts: Mapping[str, AdtDef]) -> Reading:
    function, trees = call.call.args
    assert isinstance(trees, Tuple)
    whole = solver.resolve(call.types[1])
    assert isinstance(whole, TupleType)
    operands = {Var("tree", span=t.span): t for t in trees.fields}
    pairs = list(zip(operands, whole.fields, strict=True))
    return Reading(operands, mapped(function, pairs, adts, call.call.span))


def _equal(call: OperatorCall, solver: Solver, adts: Mapping[str, AdtDef]) -> Reading | None:
    """Read `relay.equal`: of tensors it is the operator of that name."""
    left, right = map(solver.shallow, call.types)
    if not is_data(left) and not is_data(right):
        solver.known(left)
        solver.known(right)
        call.op = equal
        return None
    at = ReadCall(call, solver)
    pair = (at.operand(0), at.operand(1))
    return Reading(at.operands, compared(pair, (left, right), solver, adts, at.span))


def _compared(call: OperatorCall, solver: Solver, adts: Mapping[str, AdtDef]) -> Reading | None:
    """Read `==` or `!=` of data, lists and tuples, which are compared whole."""
    left, right = map(solver.shallow, call.types)
    whole = [ty for ty in (left, right) if isinstance(ty, AdtType | TupleType)]
    if not whole:
        return None
    for ty in whole:
        if isinstance(ty, AdtType) and adts[ty.name].by_identity:
            raise Clash(
                f"Python compares instances of `{show(ty)}`, which has `eq=False`, by identity",
                help="`relay.equal(a, b)` compares whole values",
            )
    at = ReadCall(call, solver)
    pair = (at.operand(0), at.operand(1))
    same = compared(pair, (left, right), solver, adts, at.span)
    return Reading(at.operands, at.call(logical_not, same) if call.op is not_equal else same)


# Of tensors.


def _bound(call: OperatorCall, solver: Solver, _: Mapping[str, AdtDef]) -> Reading:
    """Read an argument of `range`: itself, if it is an integer."""
    ty = solver.resolve(call.types[0])
    if isinstance(ty, TypeHole):
        if not (solver.settling and solver.guessing):
            raise Stuck(ty)
        solver.unify(ty, INT)
        ty = INT
    is_one = isinstance(ty, SizeType) or (isinstance(ty, TensorType) and not ty.shape)
    dtype = solver.resolve_dtype(ty.dtype) if isinstance(ty, TensorType) else None
    if isinstance(dtype, DTypeHole) and dtype.weak is None:
        raise Stuck(dtype)
    kind = dtype.weak if isinstance(dtype, DTypeHole) else dtype and dtype.kind
    if not is_one or kind is DTypeKind.FLOAT:
        raise _no_bound(ty, call.call.span.text, is_one=is_one)
    at = ReadCall(call, solver)
    value = at.operand(0)
    return Reading(at.operands, value)


def _no_bound(ty: Type, text: str, *, is_one: bool) -> Clash:
    """Return the mistake of an argument of `range`."""
    way = f"cast it: `range(int({text}))`" if is_one else None
    if isinstance(ty, TupleType) and text.endswith(".shape"):
        way = f"take one size: `range({text}[0])`"
    elif element_of(ty) is not None or (isinstance(ty, TensorType) and ty.shape):
        way = f"count its elements, `range(len({text}))`, or loop over it: `for item in {text}`"
    return Clash(
        f"`range` takes integers, not {show(ty)}", labels={0: f"this is {show(ty)}"}, help=way
    )


def _index(site: ReadCall) -> Expr:
    ty = site.solver.shallow(site.types[0])
    if isinstance(ty, SizeType) or (isinstance(ty, TensorType) and not ty.shape):
        return nothing(site)  # the error about its length covers that a number has no elements
    place = Tuple((site.operand(1),), span=site.span)
    return site.call(index, site.operand(0), place, spec=(("int", 0),))


_ON_TENSORS: Final[dict[Op, Reader]] = {
    first_place: lambda site: site.number(0),
    is_inside: lambda site: site.call(less, site.operand(1), site.operand(2)),
    element_at: _index,
    next_place: lambda site: site.call(add, site.operand(1), site.number(1)),
    backwards: lambda site: site.call(flip, site.operand(0), dims=(0,)),
}


# Of lists.


def _item(site: ReadCall) -> Expr:
    match site.attrs["spec"]:
        case (("int", 0),):
            found = site.call("nth", site.operand(0), site.value(site.indices()[0]))
            return replace(found, span=found.span.desugared(Construct.ITEM))
        case (("slice", start, stop, step),):
            return _slice(site, start, stop, step)
        case _:
            raise Clash("a list has one index: `xs[i]`, `xs[1:]`", labels={0: "this is a list"})


_FAR: Final = 2**62
"""Beyond every list; `slice` brings it into the range."""


def _slice(site: ReadCall, start: Any, stop: Any, step: Any) -> Expr:
    down = isinstance(step, int) and step < 0
    if isinstance(step, Expr) and (start is None or stop is None):
        raise Clash("where the step of a slice is computed, its ends are written out")
    bounds = (
        (_FAR if down else 0) if start is None else start,
        (-_FAR if down else _FAR) if stop is None else stop,
        1 if step is None else step,
    )
    found = (site.value(b) if isinstance(b, Expr) else site.number(b) for b in bounds)
    return site.call("slice", site.operand(0), *found)


def _replaced(site: ReadCall) -> Expr:
    if site.attrs["spec"] != (("int", 0),):
        raise Clash("one element of a list is replaced at a time: `xs[i] = x`")
    return site.call("update", site.operand(0), site.value(site.indices()[0]), site.operand(2))


def _length(site: ReadCall) -> Expr:
    if site.attrs["dim"] != 0:
        raise Clash("a list has one length: `len(xs)`", labels={0: "this is a list"})
    return site.call("length", site.operand(0))


def _total(site: ReadCall) -> Expr:
    """Return the sum of a list, as Python adds what it iterates over: 0 if there is nothing."""
    if site.attrs["dim"] != (0,):
        raise Clash("the elements of a list are added with `sum(xs)`", labels={0: "this is a list"})
    element = _element(site, "sum")
    if element == BOOL:
        return site.call(
            "foldl", _pairwise(site, add, counted=True), site.number(0), site.operand(0)
        )
    if not isinstance(element, TensorType | SizeType):
        raise Clash("only numbers and tensors can be added")
    is_number = isinstance(element, SizeType) or not element.shape
    return _folded(site, add, site.number(0) if is_number else nothing(site))


def _extreme(op: Op, name: str) -> Reader:
    """Return the reading of `max` or `min` of a list."""

    def read(site: ReadCall) -> Expr:
        if site.attrs["dim"] is not None:
            raise Clash(f"the {name} of a list is `{name}(xs)`", labels={0: "this is a list"})
        element = _element(site, name)
        if isinstance(element, TupleType):
            return _best(site, flipped=op is maximum)
        if not isinstance(element, SizeType) and not _is_number(element):
            raise Clash(
                f"`{name}` of a list takes numbers", labels={0: f"its elements are {show(element)}"}
            )
        return _folded(site, op, nothing(site))

    return read


def _best(site: ReadCall, *, flipped: bool) -> Expr:
    """Return the first of the least, or greatest, tuples in a list."""
    left, right, item = (Var(n, span=site.span) for n in ("left", "right", "item"))
    pair = (right, left) if flipped else (left, right)
    before = Function((left, right), site.call(is_before, *pair), span=site.span)
    key = Function((item,), item, span=site.span)
    return site.call("best_by", before, key, site.operand(0))


def _is_number(ty: Type) -> bool:
    """Return whether a type is that of single numbers."""
    return isinstance(ty, TensorType) and not ty.shape and ty != BOOL


def _element(site: ReadCall, name: str) -> Type:
    """Return the type of the elements of a list. Raises Stuck, and Clash where it is
    undetermined."""
    ty = site.solver.shallow(site.types[0])
    assert isinstance(ty, AdtType)
    (inside,) = ty.args
    assert not isinstance(inside, Dim)
    element = site.solver.resolve(inside)
    if not isinstance(element, TypeHole):
        return element
    if not (site.solver.settling and site.solver.guessing):
        raise Stuck(element)
    raise Clash(
        f"`{name}` of a list without elements, whose type cannot be inferred",
        labels={0: "this is empty"},
        help="give it an element, or say what it would hold: `xs: list[Float] = []`",
    )


def _folded(site: ReadCall, op: Op, none: Expr) -> Expr:
    plus = _pairwise(site, op)
    return site.split(
        site.operand(0), lambda head, tail: site.call("foldl", plus, head, tail), none
    )


def _pairwise(site: ReadCall, op: Op, *, counted: bool = False) -> Function:
    left, right = Var("total", span=site.span), Var("x", span=site.span)
    value = site.call(cast, right, dtype=int64) if counted else right
    return Function((left, right), site.call(op, left, value), span=site.span)


def _stacked(site: ReadCall) -> Expr:
    _element(site, "stack")
    return site.call(stack_rows, site.operand(0), site.unit(), dim=site.attrs["dim"])


def _both(site: ReadCall) -> Expr:
    return site.call("concat", site.operand(0), site.operand(1))


def _first(site: ReadCall) -> Expr:
    return site.split(site.operand(1), lambda head, _: head, nothing(site))


def _rest(site: ReadCall) -> Expr:
    return site.split(site.operand(1), lambda _, tail: tail, nothing(site))


def _has_elements(site: ReadCall) -> Expr:
    yes, no = Constant(True, span=site.span), Constant(False, span=site.span)
    return site.split(site.operand(0), lambda *_: yes, no)


def _is_cons(site: ReadCall) -> Expr:
    yes, no = Constant(True, span=site.span), Constant(False, span=site.span)
    return site.split(site.operand(1), lambda *_: yes, no)


_ON_LISTS: Final[dict[Op, Reader]] = {
    index: _item,
    set_at: _replaced,
    dim_size: _length,
    add: _both,
    stack: _stacked,
    sum_: _total,
    amax: _extreme(maximum, "max"),
    amin: _extreme(minimum, "min"),
    first_place: lambda site: site.operand(0),
    is_inside: _is_cons,
    element_at: _first,
    next_place: _rest,
    backwards: lambda site: site.call("rev", site.operand(0)),
    to_bool: _has_elements,
}


_OF_CALLS: Final[
    dict[Op, Callable[[OperatorCall, Solver, Mapping[str, AdtDef]], Reading | None]]
] = {
    as_tensor: tensor_of,
    bound: _bound,
    by_type: _chosen,
    contains: _contains,
    count_of: found_in_list,
    index_of: found_in_list,
    is_before: order,
    multiply: multiplied,
    not_equal: _compared,
    truth: truth_of,
    unpacked: unpacked_elements,
    equal: _compared,
    equal_values: _equal,
    field: _field,
    gradient_for: gradient,
    map_leaves: _tree_map,
    stop_gradient: stop_gradient_reading,
    relay_call: _of_relay,
    **dict.fromkeys(FILLED, _filled),
}
"""The overloads that are read whatever the first operand is."""
