"""Comparing values whose type a function does not know: those of a type parameter.

Where types are known `relay.equal` becomes code (`infer/overloads/equality.py`). A value of a
type parameter is looked at while the program runs, with the same answers.
"""

from __future__ import annotations

from typing import Any, Final

from ...ir.op import Effect, Host, NoGradient, Op, RuleCall, Sample, operand
from ...ir.types import BOOL, Type


class Incomparable(Exception):  # noqa: N818  becomes a diagnostic where the program compares
    """A value is compared that has no equality, such as a function."""


def _bool(call: RuleCall) -> Type:
    call.type(0)
    call.type(1)
    return BOOL


def _same(left: Any, right: Any) -> bool:
    """Return whether two values of one type are equal in every part, at any depth; what is shared
    is compared once. NaN is equal to nothing. Raises Incomparable."""
    begun: set[tuple[int, int]] = set()
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        names = _parts(a)
        if names is None:
            if not _is_equal_leaf(a, b):
                return False
            continue
        if (id(a), id(b)) in begun:
            continue
        begun.add((id(a), id(b)))
        if type(a) is not type(b) or len(names) != len(_parts(b) or ()):
            return False
        pending += reversed([(_part(a, n), _part(b, n)) for n in names])
    return True


def _parts(value: Any) -> Any:
    """Return the names or places of the parts of a value, None for a value without parts."""
    if isinstance(value, tuple):
        return range(len(value))
    fields = getattr(type(value), "__dataclass_fields__", None)
    return getattr(type(value), "__match_args__", None) if fields is None else tuple(fields)


def _part(value: Any, name: Any) -> Any:
    return value[name] if isinstance(value, tuple) else getattr(value, name)


def _is_equal_leaf(left: Any, right: Any) -> bool:
    if callable(left) or callable(right):
        raise Incomparable("functions are not compared")
    if any(getattr(left, n, None) != getattr(right, n, None) for n in _compared(left, right)):
        return False
    same: Any = left == right
    return bool(same.all()) if hasattr(same, "all") else bool(same)


def _compared(left: Any, right: Any) -> tuple[str, ...]:
    """Return the attributes in which two leaves must agree; a number takes the dtype of the tensor
    it meets."""
    if hasattr(left, "shape") and hasattr(right, "shape"):
        return ("dtype", "shape")
    return () if _rank(left) == _rank(right) == 0 else ("shape",)


def _rank(value: Any) -> int:
    return len(getattr(value, "shape", ()))


same_values: Final = Op(
    name="same_values",
    doc="Whether two values of one type are equal in every part, whatever type it is.",
    params=(operand("input"), operand("other")),
    type_rule=_bool,
    effect=Effect.FAIL,
    lowering=Host(_same),
    grad=NoGradient("a truth value"),
    samples=lambda: (Sample((0, 0)), Sample(("a", "b"))),
)
