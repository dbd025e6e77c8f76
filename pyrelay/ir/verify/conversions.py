"""That no pass casts a value to a dtype in which it loses something.

The families of dtypes are bools, integers and floats, in this order. A cast to a lower family drops
a fraction, or all but whether a number is 0; only the program itself may ask for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..expr import Call, Expr, Function, type_of
from ..op import Op
from ..traverse import post_order
from ..types import DType, dtype_of, show
from .scene import Invariant, VerifyError

if TYPE_CHECKING:
    from ..module import Module

_SAYING: Final = frozenset({"dtype", "fill_value", "operator"})
"""The attributes of operators that convert their operands, or that stand for one of Relay's, which
inference writes out."""


def verify_conversions(before: Module, after: Module) -> None:
    """Check that each cast to a lower family that a pass leaves stands where the module before it
    calls an operator that converts, or one that is written out and may convert within. Raises
    VerifyError."""
    casts = [
        (name, node, detail)
        for name, function in after.functions.items()
        if _is_new(before, name, function)
        for node in post_order(function)
        if (detail := _lowered(node)) is not None
    ]
    calls = (n for f in before.functions.values() if casts for n in post_order(f))
    allowed = {n.span for n in calls if isinstance(n, Call) and _may_convert(n)}
    for name, node, detail in casts:
        if node.span not in allowed:
            raise VerifyError(name, node, _INVARIANT, detail)


def _may_convert(call: Call) -> bool:
    is_composite = isinstance(call.callee, Op) and call.callee.body is not None
    return is_composite or not _SAYING.isdisjoint(call.attrs)


def _is_new(before: Module, name: str, function: Function) -> bool:
    """Return whether a pass made a function. What inference links from the prelude is checked
    there."""
    is_linked = name not in before.functions and name.startswith("prelude.")
    return not is_linked and function is not before.functions.get(name)


def _lowered(node: Expr) -> str | None:
    if not isinstance(node, Call) or not isinstance(node.callee, Op) or node.callee.name != "cast":
        return None
    actual, wanted = dtype_of(type_of(node.args[0])), node.attrs["dtype"]
    if actual is None or not isinstance(wanted, DType) or actual.kind.value <= wanted.kind.value:
        return None
    return f"{show(type_of(node.args[0]))} is cast to {wanted}"


_INVARIANT: Final = Invariant("only the program itself drops fractions", lambda _: iter(()))
