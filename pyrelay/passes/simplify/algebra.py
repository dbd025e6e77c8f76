"""Laws of operators that hold for every value, floating-point ones included.

Each law gives a simpler expression with the same bits. `x * 0 = 0` and `x + 0.0 = x` are no laws:
of a NaN, an infinity or -0.0 they are something else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...ir.expr import Call, Constant, Expr, TensorData
from ...ir.op import Op
from ...ir.types import DType, TensorType, is_float
from ...operators.composite.dropout import dropout
from ...operators.composite.elementwise import quotient
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
from .rules import Definitions, Redex, Rewrite, by_operator


def simplified(call: Call, known: Definitions) -> Expr | None:
    """Return something simpler that has the value of an operator call, if a law gives it."""
    assert isinstance(call.callee, Op)
    laws = _BY_OPERATOR.get(call.callee)
    if laws is None:
        return None
    site = Redex(call, known, _NO_USES, set(), [])
    found = (law.apply(site) for law in laws)
    return next((expr for expr in found if expr is not None), None)


_NO_USES: Final = Counter[Expr]()


def number(atom: Expr) -> float | None:
    """Return the value of a numeric constant of rank 0."""
    if isinstance(atom, Constant) and not isinstance(atom.value, str | TensorData):
        return atom.value
    return None


def _is_one(value: float) -> bool:
    return value == 1


def _is_true(value: float) -> bool:
    return value is True


def _is_false(value: float) -> bool:
    return value is False


def _is_negative_zero(value: float) -> bool:
    return isinstance(value, float) and value == 0.0 and math.copysign(1.0, value) < 0


def _adds_nothing(value: float) -> bool:
    return _is_negative_zero(value) if isinstance(value, float) else value == 0


def _takes_nothing(value: float) -> bool:
    return value == 0 and not _is_negative_zero(value)


# How laws are applied.


def _neutral(is_neutral: Callable[[float], bool], *places: int) -> Callable[[Redex], Expr | None]:
    """Return the law of a number that, as one of the operands at `places`, changes nothing."""

    def apply(site: Redex) -> Expr | None:
        call = site.call
        for place in places:
            value, other = number(call.args[place]), call.args[1 - place]
            if value is not None and is_neutral(value) and other.ty == call.ty:
                return other
        return None

    return apply


def _absorbing(value: bool) -> Callable[[Redex], Expr | None]:
    """Return the law of a truth value that decides a connective."""

    def apply(site: Redex) -> Expr | None:
        same = (a for a in site.call.args if number(a) is value and a.ty == site.call.ty)
        return next(same, None)

    return apply


def _is_float(call: Call) -> bool:
    return isinstance(call.ty, TensorType) and is_float(call.ty.dtype)


def _whole_quotient(site: Redex) -> Expr | None:
    return None if _is_float(site.call) else _neutral(_is_one, 1)(site)


def _plain_quotient(site: Redex) -> Expr | None:
    return replace(site.call, callee=divide) if _is_float(site.call) else None


def _own_inverse(site: Redex) -> Expr | None:
    inner = _inner(site)
    return inner.args[0] if inner is not None and inner.args[0].ty == site.call.ty else None


def _inner(site: Redex) -> Call | None:
    """Return the call of the same operator that the first operand is the value of."""
    assert isinstance(site.call.callee, Op)
    return site.made_by(site.call.args[0], site.call.callee)


def _same_type(site: Redex) -> Expr | None:
    source = site.call.args[0]
    return source if source.ty == site.call.ty else None


def _last_of_two(site: Redex) -> Expr | None:
    call, inner = site.call, _inner(site)
    if inner is None or inner.args[0].ty == call.ty:
        return None if inner is None else inner.args[0]
    if call.callee is expand and any(d.constant == -1 for d in call.attrs["size"]):
        return None  # a size kept from the first of the two
    return replace(call, args=inner.args)


def _cast_number(site: Redex) -> Expr | None:
    call, value = site.call, number(site.call.args[0])
    dtype = call.ty.dtype if isinstance(call.ty, TensorType) else None
    is_exact = isinstance(value, int) and abs(value) <= 256
    if value is None or not is_exact or not isinstance(dtype, DType) or not is_float(dtype):
        return None
    return Constant(float(value), call.ty, span=call.args[0].span)


def _cast_of_cast(site: Redex) -> Expr | None:
    inner = _inner(site)
    if inner is None or not _keeps_values(inner):
        return None
    original = inner.args[0]
    return original if original.ty == site.call.ty else replace(site.call, args=inner.args)


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


def _pair(call: Call) -> set[int]:
    ty = call.args[0].ty
    assert isinstance(ty, TensorType)
    return {d % max(1, ty.rank) for d in call.attrs.values()}


def _one_dim(site: Redex) -> Expr | None:
    return site.call.args[0] if len(_pair(site.call)) == 1 else None


def _exchanged_twice(site: Redex) -> Expr | None:
    inner = _inner(site)
    is_back = inner is not None and _pair(inner) == _pair(site.call)
    return inner.args[0] if inner is not None and is_back else None


def _order(call: Call) -> tuple[int, ...]:
    dims: tuple[int, ...] = call.attrs["dims"]
    return tuple(d % len(dims) for d in dims)


def _without_dropout(site: Redex) -> Expr | None:
    return None if site.call.attrs["training"] else site.call.args[0]


def _in_order(site: Redex) -> Expr | None:
    order = _order(site.call)
    return site.call.args[0] if order == tuple(range(len(order))) else None


def _permuted_twice(site: Redex) -> Expr | None:
    inner = _inner(site)
    if inner is None:
        return None
    before, after = _order(inner), _order(site.call)
    both = replace(site.call, args=inner.args, attrs={"dims": tuple(before[i] for i in after)})
    return inner.args[0] if _order(both) == tuple(range(len(before))) else both


# The laws. Where several are about one operator the first that applies counts.

_X: Final = "%x: Tensor[(2, 3), float32]"
_N: Final = "%n: Tensor[(3,), int64]"
_B: Final = "%b: Tensor[(3,), bool]"

LAWS: Final = (
    Rewrite(
        "n + 0 = n for integers, x + -0.0 = x", add, _neutral(_adds_nothing, 1, 0), _N, "0i64 + %n"
    ),
    Rewrite("x - 0 = x", subtract, _neutral(_takes_nothing, 1), _X, "%x - 0.0f32"),
    Rewrite("x * 1 = x", multiply, _neutral(_is_one, 1, 0), _X, "1.0f32 * %x"),
    Rewrite("x / 1 = x", divide, _neutral(_is_one, 1), _X, "%x / 1.0f32"),
    Rewrite("x ** 1 = x", power, _neutral(_is_one, 1), _X, "power(%x, 1.0f32)"),
    Rewrite("n // 1 = n for integers", floor_divide, _whole_quotient, _N, "floor_divide(%n, 1i64)"),
    Rewrite(
        "quotient(x, y) = x / y for floats", quotient, _plain_quotient, _X, "quotient(%x, 3.0f32)"
    ),
    Rewrite("-(-x) = x", negative, _own_inverse, _X, "negative(negative(%x))"),
    Rewrite("not not b = b", logical_not, _own_inverse, _B, "logical_not(logical_not(%b))"),
    Rewrite(
        "dropout(x) = x where it does not train",
        dropout,
        _without_dropout,
        _X,
        "dropout(%x, training=False)",
    ),
    Rewrite("b and True = b", logical_and, _neutral(_is_true, 1, 0), _B, "logical_and(%b, True)"),
    Rewrite(
        "b and False = False", logical_and, _absorbing(False), "%b: bool", "logical_and(%b, False)"
    ),
    Rewrite("b or False = b", logical_or, _neutral(_is_false, 1, 0), _B, "logical_or(%b, False)"),
    Rewrite("b or True = True", logical_or, _absorbing(True), "%b: bool", "logical_or(%b, True)"),
    Rewrite("cast(x, d) = x of dtype d", cast, _same_type, _X, "cast(%x, dtype=float32)"),
    Rewrite(
        "cast(n, d) = n.0 for numbers up to 256",
        cast,
        _cast_number,
        _X,
        "%x * cast(3i64, dtype=float32)",
    ),
    Rewrite(
        "cast(cast(x, c), d) = cast(x, d) where c is wider than the dtype of x",
        cast,
        _cast_of_cast,
        _X,
        "cast(cast(%x, dtype=float64), dtype=int64)",
    ),
    Rewrite("reshape(x, s) = x of shape s", reshape, _same_type, _X, "reshape(%x, shape=(2, 3))"),
    Rewrite(
        "reshape(reshape(x, r), s) = reshape(x, s)",
        reshape,
        _last_of_two,
        _X,
        "reshape(reshape(%x, shape=(6,)), shape=(3, 2))",
    ),
    Rewrite("expand(x, s) = x of shape s", expand, _same_type, _X, "expand(%x, size=(2, 3))"),
    Rewrite(
        "expand(expand(x, r), s) = expand(x, s)",
        expand,
        _last_of_two,
        "%x: Tensor[(3,), float32]",
        "expand(expand(%x, size=(2, 3)), size=(4, 2, 3))",
    ),
    Rewrite("sum_to(x, s) = x of shape s", sum_to, _same_type, _X, "sum_to(%x, size=(2, 3))"),
    Rewrite("flatten(x) = x of one dim", flatten, _same_type, _N, "flatten(%n)"),
    Rewrite("squeeze(x) = x without dims of size 1", squeeze, _same_type, _X, "squeeze(%x)"),
    *(
        rule
        for op, (a, b) in ((transpose, ("dim0", "dim1")), (swapaxes, ("axis0", "axis1")))
        for rule in (
            Rewrite(f"{op.name}(x, d, d) = x", op, _one_dim, _X, f"{op.name}(%x, {a}=0, {b}=-2)"),
            Rewrite(
                f"{op.name}({op.name}(x, d, e), e, d) = x",
                op,
                _exchanged_twice,
                _X,
                f"{op.name}({op.name}(%x, {a}=0, {b}=1), {a}=1, {b}=0)",
            ),
        )
    ),
    Rewrite("permute(x, (0, 1, ...)) = x", permute, _in_order, _X, "permute(%x, dims=(0, 1))"),
    Rewrite(
        "permute(permute(x, p), q) = permute(x, [p[i] for i in q])",
        permute,
        _permuted_twice,
        "%x: Tensor[(2, 3, 4), float32]",
        "permute(permute(%x, dims=(1, 2, 0)), dims=(2, 1, 0))",
    ),
)

_BY_OPERATOR: Final = by_operator(LAWS)
