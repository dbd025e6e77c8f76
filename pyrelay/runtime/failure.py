"""What went wrong while a program ran, told at the user's own line.

Bodies of operators raise plain Python exceptions; here each becomes the catalogue entry that it
means, with the span of the expression that ran.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..diagnostics.catalogue.run import (
    AssumptionBroken,
    CheckFailed,
    DivisionByZero,
    FunctionsCompared,
    IndexOutOfRange,
    IntegerTooBig,
    ListIsEmpty,
    OperatorFailed,
    Raised,
    SizesAreNotEqual,
    WrongElement,
)
from ..diagnostics.diagnostic import Problem, RunError
from ..diagnostics.source import Span
from ..ir.bounds import relation
from ..ir.dims import Dim
from ..ir.expr import Assumption
from ..ir.ops.failing import AssertionFailed, EmptyList, ProgramFailed
from ..ir.ops.sizes import SizesDiffer
from ..ir.ops.stream import ElementError
from ..ir.ops.whole import Incomparable


def check_assumption(needed: Assumption, size: Callable[[Dim], int]) -> None:
    """Stop if sizes are not as the program needs them; `size` evaluates dims. Raises RunError."""
    if size(needed.left) == size(needed.right):
        return
    left, _, right = relation(needed.left, needed.right)
    actual = tuple((str(d), size(d)) for d in (left, right) if d.constant is None)
    raise RunError(AssumptionBroken(needed.span, str(needed), actual))


def located(error: Exception, span: Span) -> RunError:
    """Give the error as one of the running program at a place in its text."""
    if isinstance(error, RunError) and all(d.primary is not None for d in error.diagnostics):
        return error
    return RunError(_problem(error, span))


def _problem(error: Exception, span: Span) -> Problem:
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    if type(error) in _BY_CLASS:
        return _BY_CLASS[type(error)](span)
    if isinstance(error, OverflowError) or "Overflow when unpacking long" in message:
        return IntegerTooBig(span)
    match error:
        case ElementError(position=position, wanted=wanted, actual=actual, way=way):
            return WrongElement(span, position, wanted, actual, way)
        case SizesDiffer(left=left, right=right):
            return SizesAreNotEqual(span, left, right)
        case AssertionFailed():
            return CheckFailed(span, str(error))
        case ProgramFailed():
            return Raised(span, str(error))
        case IndexError():
            return IndexOutOfRange(span, message)
        case RuntimeError() if "ZeroDivisionError" in message:
            return DivisionByZero(span)
        case RuntimeError() if "out of range" in message or "out of bounds" in message:
            return IndexOutOfRange(span, message)
        case _:
            return OperatorFailed(span, f"{type(error).__name__}: {message}")


_BY_CLASS: Final[dict[type[Exception], Callable[[Span], Problem]]] = {
    EmptyList: ListIsEmpty,
    Incomparable: FunctionsCompared,
    ZeroDivisionError: DivisionByZero,
}
"""The exceptions that say all by being raised."""
