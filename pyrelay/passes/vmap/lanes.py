"""Branches that differ between the elements of a batch.

Each arm computes for the elements that take it alone: what it uses is gathered, and its value is
scattered. Where both arms are a few operations that cannot fail, all elements compute both.
"""

from __future__ import annotations

from typing import Final

from ...ir.dims import Dim
from ...ir.expr import Call, Expr, If, LetBlock, Tuple, TupleGet, is_atom, type_of
from ...ir.op import Op
from ...ir.types import TensorType, TupleType, Type
from ...operators.builder import Builder, Value
from ...operators.primitive.activation import relu
from ...operators.primitive.arithmetic import (
    abs_,
    add,
    maximum,
    minimum,
    multiply,
    negative,
    sign,
    subtract,
)
from ...operators.primitive.compare import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    where,
)
from ...operators.primitive.gathering import nonzero
from ...operators.primitive.math import sigmoid, tanh

_CHEAP: Final = frozenset(
    (
        *(abs_, add, maximum, minimum, multiply, negative, sign, subtract),
        *(equal, greater, greater_equal, less, less_equal, not_equal),
        *(logical_and, logical_not, logical_or, where),
        *(relu, sigmoid, tanh),
    )
)
"""Operators that both arms may compute for all elements: their derivatives are finite, so that an
element that does not take an arm adds 0 to the gradient."""

_FEW: Final = 8
"""So many of them in an arm are cheaper than gathering and scattering."""


def is_cheap(arm: Expr) -> bool:
    """Return whether an arm is a few operations that cannot fail and give no data."""
    count = 0
    while isinstance(arm, LetBlock):
        for binding in arm.bindings:
            match binding.value:
                case Call(Op() as op) if op in _CHEAP:
                    count += 1
                case Tuple() | TupleGet():
                    pass
                case value if is_atom(value):
                    pass
                case _:
                    return False
        arm = arm.body
    return is_atom(arm) and count <= _FEW and is_plain(type_of(arm))


def is_plain(ty: Type) -> bool:
    """Return whether a value of a type is a tensor, or a tuple of them."""
    if isinstance(ty, TupleType):
        return all(map(is_plain, ty.fields))
    return isinstance(ty, TensorType)


def chosen(test: Value, then: Value, otherwise: Value) -> Value:
    """Return for each element that of two values that a test says."""
    if isinstance(then.ty, TupleType):
        fields = range(len(then.ty.fields))
        return test.builder.tuple([chosen(test, then[i], otherwise[i]) for i in fields])
    padded = test.reshape(*test.shape, *(Dim.of(1),) * (then.rank - 1))
    return where(padded, then, otherwise)


def positions(test: Value) -> Value:
    """Return the positions of the elements for which a test holds."""
    found = nonzero(test)
    return found.reshape(found.shape[0])


def if_any(builder: Builder, count: Dim, then: Expr, otherwise: Value) -> Value:
    """Return the value of an arm if any element takes it, else another."""
    is_any = greater(builder.size(count), 0)
    made = If(is_any.atom, then, otherwise.atom, otherwise.ty, span=builder.span)
    return builder.bind(made, "merged")
