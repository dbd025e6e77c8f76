"""Lists that are joined: by `+`, by `+=`, by `*xs` in a display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...diagnostics.catalogue.lists import MixedLists
from ...diagnostics.catalogue.types import OperatorMismatch
from ...diagnostics.source import Construct, Span
from ...ir.expr import Call, Constructor, Expr, GlobalVar, Var, use_of
from ...ir.types import UNIT, TensorType, TupleType, Type, show
from ...prelude.library import LIST, element_of, inner_of, qualified

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...diagnostics.diagnostic import Problem

_CONCAT: Final = qualified("concat")
_REVERSED_ONTO: Final = qualified("rev_onto")
"""Concatenations that lengthen the list of a name that is appended to, which is stored
backwards."""


def joins_lists(call: Call) -> bool:
    """Return whether a call makes one list of two."""
    callee = call.callee
    return isinstance(callee, GlobalVar) and callee.name in (_CONCAT, _REVERSED_ONTO)


def is_empty_list(expr: Expr) -> bool:
    """Return whether an expression is the list without elements, written so."""
    match expr:
        case Call(callee=Constructor(adt, "Nil")):
            return adt == LIST
        case _:
            return False


def mixed_lists(call: Call, types: Sequence[Type]) -> Problem:
    """Return the problem of values of two types that are joined as lists."""
    assert isinstance(call.callee, GlobalVar)
    pairs = list(zip(call.args, types, strict=True))
    if call.callee.name == _REVERSED_ONTO:
        pairs.reverse()
    (left, first), (right, second) = pairs
    if element_of(first) is None and call.span.construct is Construct.OPENED:
        made = f"make a list of it: `[x for x in {_text(left, call.span)}]`"
        return OperatorMismatch(call.span, f"a display opens lists, not {show(first)}", (), made)
    places = [_written(operand, call.span) for operand in (left, right)]
    instead = _instead((left, right), (first, second), call.span)
    return MixedLists(call.span, places[0], show(first), places[1], show(second), instead)


def _instead(operands: Sequence[Expr], types: Sequence[Type], call: Span) -> str:
    for operand, ty in zip(operands, types, strict=True):
        if isinstance(ty, TupleType):
            return f"all elements of a list have one type: look at `{_text(operand, call)}`"
        if element_of(ty) is None:
            return f"put it into a list: `[{_text(operand, call)}]`"
    own, other = map(element_of, types)
    assert own is not None
    assert other is not None
    for operand, ty, met in zip(operands, (own, other), (other, own), strict=True):
        inner, text = inner_of(met), _text(operand, call)
        if inner is not None and ty in (inner, UNIT):
            made = text if text.startswith("[") else f"[x for x in {text}]"
            wanted = f"list[{show(inner)} | None]"
            return f"say under a name that it may hold None: `maybe: {wanted} = {made}`"
        if _is_number(ty, "int") and _is_number(met, "float"):
            return f"make the numbers of one kind: `[float(n) for n in {text}]`"
    return "make elements of one type, or keep the two lists apart, in a tuple: `(xs, ys)`"


def _is_number(ty: Type, kind: str) -> bool:
    return isinstance(ty, TensorType) and ty.shape == () and str(ty.dtype).startswith(kind)


def _written(operand: Expr, call: Span) -> Span:
    """Return the place of an operand."""
    if isinstance(operand, Call) and operand.span.start <= call.start and operand.args:
        return operand.args[0].span  # what follows `*xs` in a display
    return use_of(operand, call) or call


def _text(operand: Expr, call: Span) -> str:
    if isinstance(operand, Var) and use_of(operand, call) is None:
        return operand.name
    return _written(operand, call).text.removeprefix("*") or "xs"
