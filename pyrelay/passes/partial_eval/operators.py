"""Operators under partial evaluation: what is known is computed, by the kernels that run it.

An operator that may fail is computed too where it does not; where it does, the call stays, and
fails where it stands if it is reached. Laws are those of `simplify/algebra.py`, which hold for
every float; `fast_math` adds those of real numbers that have no zero with a sign.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, final

from ...ir.effect import own_effect
from ...ir.expr import Call, Constant, Expr, Tuple
from ...ir.op import Effect, Op
from ...ir.types import INT, SizeType, TensorType, fits, int64, is_float
from ...operators.host.failing import check
from ...operators.primitive import arithmetic, compare
from ..base import Evaluate, Opaque
from ..simplify.algebra import number, simplified
from ..simplify.constants import evaluated
from ..simplify.rules import Definitions


@final
class Operators:
    """Computes and simplifies calls of operators."""

    def __init__(self, evaluate: Evaluate | None, opaque: Opaque, *, fast_math: bool) -> None:
        self._evaluate: Final = evaluate
        self._opaque: Final = opaque
        self._fast_math: Final = fast_math

    def simplified(self, call: Call, known: Definitions) -> Expr:
        """Return a constant, another atom or a simpler call in the place of a call."""
        op, ty, effect = call.callee, call.ty, own_effect(call)
        assert isinstance(op, Op)
        if effect & ~Effect.FAIL or self._opaque(op):
            return call
        if isinstance(ty, SizeType) and ty.dim.constant is not None and not effect:
            return Constant(ty.dim.constant, ty, span=call.span)
        if op is check and number(call.args[0]) is True:
            return Tuple((), call.ty, span=call.span)
        found = _of_integers(op, call) or evaluated(call, self._evaluate, known)
        if found is not None:
            return found
        simpler = None if effect else simplified(call, known)
        if simpler is None and self._fast_math:
            simpler = _fast(op, call)
        return call if simpler is None else simpler


def _of_integers(op: Op, call: Call) -> Constant | None:
    """Return the value of an operator on two integers, which the host computes in Python too."""
    compute = _ON_INTEGERS.get(op)
    if compute is None or len(call.args) != 2 or not all(map(_is_integer, call.args)):
        return None
    left, right = (number(a) for a in call.args)
    found = compute(left, right)
    if call.ty == INT and not fits(found, int64):
        return None
    return Constant(found, call.ty, span=call.span)


def _is_integer(atom: Expr) -> bool:
    is_int = isinstance(atom, Constant) and type(atom.value) is int
    return is_int and (atom.ty == INT or isinstance(atom.ty, SizeType))


_ON_INTEGERS: Final[dict[Op, Callable[[Any, Any], Any]]] = {
    arithmetic.add: operator.add,
    arithmetic.subtract: operator.sub,
    arithmetic.multiply: operator.mul,
    compare.equal: operator.eq,
    compare.not_equal: operator.ne,
    compare.less: operator.lt,
    compare.less_equal: operator.le,
    compare.greater: operator.gt,
    compare.greater_equal: operator.ge,
}


def _fast(op: Op, call: Call) -> Expr | None:
    """Return the operand that a sum with zero, of any sign, is."""
    places = {arithmetic.add: (0, 1), arithmetic.subtract: (1,)}.get(op, ())
    for place in places:
        other = call.args[1 - place]
        is_number = isinstance(call.ty, TensorType) and is_float(call.ty.dtype)
        if is_number and number(call.args[place]) == 0 and other.ty == call.ty:
            return other
    return None
