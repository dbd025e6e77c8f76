"""The decision on a function that a program offers to the backend: its C, or the reason against
it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...kernels.backend import ProgramFunction
from ...kernels.function_plan import FunctionPlan
from ..candidates import is_worth_it
from .c_types import NotInC
from .program import c_text


def function_findings(functions: Iterable[ProgramFunction]) -> Iterator[tuple[str, str | None]]:
    """Yield the names of functions that loop or recurse, and why C does not run one; None if it
    does. Those that C has within others are left out."""
    found = [(function, _finding(function)) for function in functions]
    within: set[str] = set()
    for function, why in found:
        if why is None:
            within.update(FunctionPlan(function.module, function.name).by_global)
    for function, why in found:
        if why is None or (why and function.name not in within):
            yield function.name, why


def _finding(function: ProgramFunction) -> str | None:
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
    if _finding(function) is not None:
        return ""
    return c_text(function.module, function.name).own
