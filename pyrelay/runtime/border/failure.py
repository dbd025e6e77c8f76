"""Failures of running programs, at the user's own lines.

Bodies of operators raise plain Python exceptions; here each becomes the catalogue entry that it
means, with the span of the expression that ran.
"""

from __future__ import annotations

import re
from bdb import BdbQuit
from collections.abc import Callable
from typing import Final, TypeGuard

import torch

from ...analysis.dim_availability import needed
from ...config import current
from ...diagnostics.catalogue.batching import StructuresOfBatch
from ...diagnostics.catalogue.run import (
    AssumptionBroken,
    CheckFailed,
    DivisionByZero,
    FunctionsCompared,
    IndexOutOfRange,
    IntegerTooBig,
    ListIsEmpty,
    NoInteger,
    OperatorFailed,
    Raised,
    SizeDividedByZero,
    SizeIsNegative,
    SizesAreNotEqual,
    SizeUndetermined,
    TooDeep,
    WrongElement,
)
from ...diagnostics.diagnostic import Problem, RunError
from ...diagnostics.source import Span
from ...ir.bounds import relation
from ...ir.dims import Dim, DimOp
from ...ir.expr import Assumption, Call, Expr, GlobalVar, Var, type_of
from ...ir.op import Op
from ...ir.types import DType, TensorType, is_float
from ...kernels.backend import FailedInside
from ...lower_torch.apply import apply_op
from ...lower_torch.constants import torch_dtype
from ...operators.composite.classes import class_dim, nll_loss, nll_loss_with_total
from ...operators.composite.cross_entropy import softmax_cross_entropy
from ...operators.host.conversions import NotAnInteger
from ...operators.host.failing import (
    AssertionFailed,
    DepthExceeded,
    ProgramFailed,
    StructuresDiffer,
)
from ...operators.host.sizes import NegativeSize, SizeNotTold, equal_sizes
from ...operators.host.stream import ElementError
from ...operators.host.whole import Incomparable
from ...operators.primitive.embedding import embedding
from ...operators.primitive.gathering import index_select, one_hot
from ...operators.shared.failures import EmptyList, SizesDiffer
from ...text.open_sizes import with_any


def check_assumption(needed: Assumption, size: Callable[[Dim], int]) -> None:
    """Stop if sizes are not as the program needs them; `size` evaluates dims. Raises RunError."""
    try:
        if size(needed.left) == size(needed.right):
            return
    except ZeroDivisionError:
        (text,) = with_any([str(needed)])
        raise RunError(SizeDividedByZero(needed.span, text)) from None
    except KeyError:
        return  # about a size that no argument shows
    left, _, right = relation(needed.left, needed.right)
    dims = [d for d in (left, right) if d.constant is None]
    text, *names = with_any([str(needed), *map(str, dims)])
    actual = tuple(zip(names, map(size, dims), strict=True))
    raise RunError(AssumptionBroken(needed.span, text, actual))


def located(error: Exception, span: Span, call: Call | None = None) -> Exception:
    """Return the error as one of the running program at a place in its text; `call` is the call of
    an operator that failed, if that is known. What a debugger raises to quit stays what it is."""
    if isinstance(error, BdbQuit):
        return error
    if isinstance(error, RunError) and all(d.primary is not None for d in error.diagnostics):
        return error
    return RunError(_problem(error, span, call))


def located_inside(error: FailedInside) -> Exception:
    """Return the error of a call that failed inside of a function of a backend: the operator is
    applied once more, which says why."""
    call = error.call
    if not isinstance(call.callee, Op):
        name = call.callee.name if isinstance(call.callee, Var | GlobalVar) else "the function"
        return RunError(too_deep(call.span, name, current().max_depth))
    types = [type_of(a) for a in call.args]
    operands = [
        torch.tensor(value, dtype=torch_dtype(ty.dtype))
        if isinstance(ty, TensorType) and isinstance(ty.dtype, DType) and is_float(ty.dtype)
        else value
        for value, ty in zip(error.operands, types, strict=True)
    ]
    try:
        apply_op(call.callee, call, operands, _no_size, torch.device("cpu"))
    except Exception as found:  # whatever the operator raises
        return located(found, call.span, call)
    raise AssertionError(f"{call.callee.name} does not fail on {error.operands}")


def _no_size(dim: Dim) -> int:
    raise AssertionError(f"an operator of numbers needs no size, but {dim}")


def too_deep(span: Span, function: str, limit: int) -> TooDeep:
    """Return the mistake of a call that makes too many wait. In derived code the function has its
    own name, and the text of the call that of the user."""
    called = _CALL.match(span.text)
    return TooDeep(span, function if called is None else called[1], limit)


_CALL: Final = re.compile(r"([^\W\d]\w*)\(")


def tells_more(expr: Expr) -> TypeGuard[Call]:
    """Return whether an expression is a call of an operator whose failures its attributes
    explain."""
    if has_index_range(expr):
        return True
    return isinstance(expr, Call) and (expr.callee is equal_sizes or bool(_divisors(expr)))


def _divisors(call: Call) -> list[Dim]:
    """Return the sizes with names that sizes in the attributes of a call are divided by."""
    found: list[Dim] = []
    pending = list(needed(call))
    while pending:
        for atom in (a for monomial, _ in pending.pop().terms for a in monomial):
            if isinstance(atom, DimOp):
                pending += (atom.left, atom.right)
                divides = atom.kind != "max" and atom.right.constant is None
                found += (atom.right,) if divides else ()
    return found


def has_index_range(expr: Expr) -> TypeGuard[Call]:
    """Return whether an expression is a call of an operator whose range of indices is known
    here."""
    return isinstance(expr, Call) and isinstance(expr.callee, Op) and expr.callee in _INDEXED


def _valid_indices(call: Call | None) -> str | None:
    """Return a note with the range of the indices that a call takes, which torch does not name."""
    if call is None or not has_index_range(call):
        return None
    assert isinstance(call.callee, Op)
    size = _INDEXED[call.callee](call)
    count = size.constant
    if count == 0:
        return "there is nothing to index: the size is 0"
    return f"valid indices are 0 to {size - 1 if count is None else count - 1}"


def _classes(call: Call) -> Dim:
    scores = type_of(call.args[0])
    assert isinstance(scores, TensorType)
    return scores.shape[class_dim(scores.rank)]


def _rows(call: Call) -> Dim:
    table = type_of(call.args[1])
    assert isinstance(table, TensorType)
    return table.shape[0]


def _selected(call: Call) -> Dim:
    source = type_of(call.args[0])
    assert isinstance(source, TensorType)
    return source.shape[call.attrs["dim"]]


_INDEXED: Final[dict[Op, Callable[[Call], Dim]]] = {
    softmax_cross_entropy: _classes,
    nll_loss: _classes,
    nll_loss_with_total: _classes,
    embedding: _rows,
    index_select: _selected,
    one_hot: lambda call: Dim.of(call.attrs["num_classes"]),
}
"""The size that indices of an operator are below."""


def _problem(error: Exception, span: Span, call: Call | None) -> Problem:
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, ZeroDivisionError):
        divisors = [] if call is None else _divisors(call)
        return DivisionByZero(span, str(divisors[0]) if divisors else None)
    if type(error) in _BY_CLASS:
        return _BY_CLASS[type(error)](span)
    if type(error) in _BY_MESSAGE:
        return _BY_MESSAGE[type(error)](span, str(error))
    if isinstance(error, OverflowError) or "Overflow when unpacking long" in message:
        return IntegerTooBig(span)
    match error:
        case ElementError(position=position, wanted=wanted, actual=actual, way=way):
            return WrongElement(span, position, wanted, actual, way)
        case DepthExceeded(function=function, limit=limit):
            return too_deep(span, function, limit)
        case SizesDiffer() | SizeNotTold():
            return _about_sizes(error, span, call)
        case _:
            return _of_torch(error, message, span, call)


def _of_torch(error: Exception, message: str, span: Span, call: Call | None) -> Problem:
    """Return the problem of an error that torch raises, which only its message distinguishes."""
    is_runtime = isinstance(error, RuntimeError)
    if is_runtime and "ZeroDivisionError" in message:
        return DivisionByZero(span)
    is_index = is_runtime and any(words in message for words in _OUT_OF_RANGE)
    if is_index or isinstance(error, IndexError):
        return IndexOutOfRange(span, message, _valid_indices(call))
    if is_runtime and any(words in message for words in _NEGATIVE):
        return SizeIsNegative(span, "a size is negative")
    return OperatorFailed(span, f"{type(error).__name__}: {message}")


_NEGATIVE: Final = ("negative dimension", "size must be non-negative")
"""torch's messages about a size below 0."""

_OUT_OF_RANGE: Final = ("out of range", "out of bounds", "Class values must be")
"""torch's messages about an index."""


def _about_sizes(error: SizesDiffer | SizeNotTold, span: Span, call: Call | None) -> Problem:
    if isinstance(error, SizeNotTold):
        return SizeUndetermined(span, error.name, error.reason)
    sizes = sorted((error.left, error.right), reverse=True)
    factor = _factor_of(call)
    if factor is not None and sizes[1] == factor * (sizes[0] // factor):
        return SizesAreNotEqual(span, sizes[0], sizes[1], factor)
    return SizesAreNotEqual(span, error.left, error.right)


def _factor_of(call: Call | None) -> int | None:
    """Return the number that a size is divided by where it is compared with `factor * (size //
    factor)`; None for any other call."""
    if call is None or call.callee is not equal_sizes:
        return None
    left, right = call.attrs["left"], call.attrs["right"]
    for size, product in ((left, right), (right, left)):
        match product.terms:
            case (((DimOp("floordiv", dividend, divisor),), factor),) if dividend == size:
                return factor if divisor.constant == factor else None
            case _:
                pass
    return None


_BY_CLASS: Final[dict[type[Exception], Callable[[Span], Problem]]] = {
    EmptyList: ListIsEmpty,
    StructuresDiffer: StructuresOfBatch,
    Incomparable: FunctionsCompared,
}
"""The exceptions that say all by being raised."""

_BY_MESSAGE: Final[dict[type[Exception], Callable[[Span, str], Problem]]] = {
    AssertionFailed: CheckFailed,
    ProgramFailed: Raised,
    NotAnInteger: NoInteger,
    NegativeSize: SizeIsNegative,
}
"""The exceptions that say the rest in their message."""
