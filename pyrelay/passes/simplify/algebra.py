"""Laws of operators that hold for every value, floating-point ones included.

Each law gives a simpler expression with the same bits, or None. `x * 0` and `x + 0.0` are no laws:
of a NaN, an infinity or -0.0 they are something else. A definition is looked up by variable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from ...ir.expr import Call, Constant, Expr, TensorData
from ...ir.op import Op
from ...ir.types import DType, TensorType, is_float
from ...operators.composite.rounding import quotient
from ...operators.primitive.arithmetic import (
    add,
    divide,
    floor_divide,
    multiply,
    negative,
    power,
    subtract,
)
from ...operators.primitive.compare import cast, logical_and, logical_not, logical_or
from ...operators.primitive.reduce import sum_to
from ...operators.primitive.view import (
    expand,
    flatten,
    permute,
    reshape,
    squeeze,
    swapaxes,
    transpose,
)

Definitions: TypeAlias = Mapping[Expr, Expr]
"""The values of variables, where they are known."""
_Law: TypeAlias = Callable[[Call, Definitions], "Expr | None"]


def simplified(call: Call, known: Definitions) -> Expr | None:
    """Return something simpler that has the value of an operator call, if a law gives it."""
    assert isinstance(call.callee, Op)
    law = _LAWS.get(call.callee)
    return None if law is None else law(call, known)


def number(atom: Expr) -> float | None:
    """Return the value of a numeric constant of rank 0."""
    if isinstance(atom, Constant) and not isinstance(atom.value, str | TensorData):
        return atom.value
    return None


def _is_negative_zero(value: float | None) -> bool:
    return isinstance(value, float) and value == 0.0 and math.copysign(1.0, value) < 0


def _neutral_on_the_right(call: Call, is_neutral: Callable[[float], bool]) -> Expr | None:
    left, right = call.args
    value = number(right)
    return left if value is not None and is_neutral(value) and left.ty == call.ty else None


def _swapped(call: Call) -> Call:
    return replace(call, args=call.args[::-1])


def _add_zero(value: float) -> bool:
    return _is_negative_zero(value) if isinstance(value, float) else value == 0


def _subtract_zero(value: float) -> bool:
    return value == 0 and not _is_negative_zero(value)


def _sum(call: Call, _: Definitions) -> Expr | None:
    right = _neutral_on_the_right(call, _add_zero)
    return _neutral_on_the_right(_swapped(call), _add_zero) if right is None else right


def _difference(call: Call, _: Definitions) -> Expr | None:
    return _neutral_on_the_right(call, _subtract_zero)


def _product(call: Call, _: Definitions) -> Expr | None:
    right = _neutral_on_the_right(call, lambda v: v == 1)
    return _neutral_on_the_right(_swapped(call), lambda v: v == 1) if right is None else right


def _but_one(call: Call, _: Definitions) -> Expr | None:
    return _neutral_on_the_right(call, lambda v: v == 1)


def _rounded_quotient(call: Call, _: Definitions) -> Expr | None:
    """Return the plain quotient of floats, which is fused with its surroundings."""
    ty = call.ty
    is_exact = isinstance(ty, TensorType) and is_float(ty.dtype)
    return replace(call, callee=divide) if is_exact else None


def _whole_quotient(call: Call, _: Definitions) -> Expr | None:
    ty = call.ty
    if isinstance(ty, TensorType) and is_float(ty.dtype):
        return None  # floor(x / 1.0) rounds
    return _neutral_on_the_right(call, lambda v: v == 1)


def _undone(call: Call, known: Definitions) -> Expr | None:
    """The law of an operator that undoes itself."""
    inner = known.get(call.args[0])
    if isinstance(inner, Call) and inner.callee is call.callee and inner.args[0].ty == call.ty:
        return inner.args[0]
    return None


def _connective(absorbing: bool) -> _Law:
    def law(call: Call, _: Definitions) -> Expr | None:
        for one, other in (call.args, call.args[::-1]):
            value = number(one)
            if isinstance(value, bool) and other.ty == call.ty:
                return other if value is not absorbing else one if one.ty == call.ty else None
        return None

    return law


def _same_type(call: Call, _: Definitions) -> Expr | None:
    """The law of a view that does nothing where the type stays."""
    return call.args[0] if call.args[0].ty == call.ty else None


def _last_of_two(call: Call, known: Definitions) -> Expr | None:
    """The law of a view of which only the last of two matters."""
    same = _same_type(call, known)
    inner = known.get(call.args[0])
    if same is not None or not isinstance(inner, Call) or inner.callee is not call.callee:
        return same
    if inner.args[0].ty == call.ty:
        return inner.args[0]
    if call.callee is expand and any(d.constant == -1 for d in call.attrs["size"]):
        return None  # a size kept from the first of the two
    return replace(call, args=inner.args)


def _cast(call: Call, known: Definitions) -> Expr | None:
    source = call.args[0]
    if source.ty == call.ty:
        return source
    value = number(source)
    if value is not None and isinstance(call.ty, TensorType):
        return _number_at(value, source, call)
    inner = known.get(source)
    if isinstance(inner, Call) and inner.callee is cast and _keeps_values(inner):
        original = inner.args[0]
        return original if original.ty == call.ty else replace(call, args=inner.args)
    return None


def _number_at(value: float, source: Expr, call: Call) -> Expr | None:
    """Return an exact integer or bool constant at a float dtype; others are left to evaluation."""
    dtype = call.ty.dtype if isinstance(call.ty, TensorType) else None
    exact = isinstance(value, int) and abs(value) <= 256  # exact in every float dtype
    if isinstance(dtype, DType) and is_float(dtype) and exact:
        return Constant(float(value), call.ty, span=source.span)
    return None


def _keeps_values(call: Call) -> bool:
    """Return whether a cast gives every element unchanged, at a wider dtype of its kind."""
    source, target = call.args[0].ty, call.ty
    if not isinstance(source, TensorType) or not isinstance(target, TensorType):
        return False
    a, b = source.dtype, target.dtype
    if not isinstance(a, DType) or not isinstance(b, DType):
        return False
    signed = "uint" in a.name or "uint" not in b.name
    halves = {a.name, b.name} == {"float16", "bfloat16"}
    return a.kind is b.kind and a.bits <= b.bits and signed and not halves


def _transpose(call: Call, known: Definitions) -> Expr | None:
    source = call.args[0]
    ty = source.ty
    assert isinstance(ty, TensorType)
    rank = max(1, ty.rank)
    pair = {d % rank for d in call.attrs.values()}
    if len(pair) == 1:
        return source
    inner = known.get(source)
    if isinstance(inner, Call) and inner.callee is call.callee:
        back = {d % rank for d in inner.attrs.values()}
        return inner.args[0] if pair == back else None
    return None


def _permute(call: Call, known: Definitions) -> Expr | None:
    order = _order(call)
    if order == tuple(range(len(order))):
        return call.args[0]
    inner = known.get(call.args[0])
    if isinstance(inner, Call) and inner.callee is permute:
        before = _order(inner)
        both = tuple(before[i] for i in order)
        if both == tuple(range(len(both))):
            return inner.args[0]
        return replace(call, args=inner.args, attrs={"dims": both})
    return None


def _order(call: Call) -> tuple[int, ...]:
    dims: tuple[int, ...] = call.attrs["dims"]
    return tuple(d % len(dims) for d in dims)


_LAWS: Final[Mapping[Op, _Law]] = {
    add: _sum,
    subtract: _difference,
    multiply: _product,
    divide: _but_one,
    quotient: _rounded_quotient,
    floor_divide: _whole_quotient,
    power: _but_one,
    negative: _undone,
    logical_not: _undone,
    logical_and: _connective(False),
    logical_or: _connective(True),
    cast: _cast,
    reshape: _last_of_two,
    expand: _last_of_two,
    sum_to: _same_type,
    flatten: _same_type,
    squeeze: _same_type,
    transpose: _transpose,
    swapaxes: _transpose,
    permute: _permute,
}
