"""The decision on a function that a program offers to the backend: its C, or the reason against
it."""

from __future__ import annotations

from ...ir.expr import type_of
from ...ir.types import SizeType, TensorType, TupleType, Type
from ...kernels.backend import ProgramFunction, Run
from .c_types import NotInC
from .call import FunctionCall
from .program import c_text, is_worth_it


def function_run(function: ProgramFunction, fallback: Run) -> Run:
    """Return what runs a function: C, if it loops or recurses over numbers and tensors, else the
    fallback."""
    own = function.function
    assert own.result is not None
    types = [*(type_of(p) for p in own.params), own.result]
    if not all(map(_is_plain, types)) or not is_worth_it(function.module, function.name):
        return fallback
    return FunctionCall(function, fallback)


def function_finding(function: ProgramFunction) -> str | None:
    """Return why a function is left to the host, empty if it neither loops nor recurses; None if C
    runs it."""
    if not is_worth_it(function.module, function.name):
        return ""
    try:
        c_text(function.module, function.name)
    except NotInC as why:
        return str(why)
    return None


def function_text(function: ProgramFunction) -> str:
    """Return the C of a function, and of what it calls; empty if the host runs it."""
    if function_finding(function) is not None:
        return ""
    return c_text(function.module, function.name).own


def _is_plain(ty: Type) -> bool:
    if isinstance(ty, TupleType):
        return all(map(_is_plain, ty.fields))
    return isinstance(ty, TensorType | SizeType)
