"""The types of literals, and number literals that no dtype of theirs has."""

from __future__ import annotations

from ..diagnostics.catalogue.dtypes import NumberOutOfRange
from ..diagnostics.diagnostic import Problem
from ..ir.dims import Dim
from ..ir.expr import Constant, TensorData
from ..ir.types import BOOL, STR, DType, DTypeKind, SizeType, TensorType, Type, fits, int64
from ..operators.captured import CAPTURED, CapturedInteger
from .solver import Solver


def literal_type(literal: Constant, solver: Solver) -> Type:
    """Return the type of a literal that has none: a number has the dtype that it meets."""
    match literal.value:
        case bool():
            return BOOL
        case CapturedInteger():
            return TensorType((), solver.fresh_dtype(DTypeKind.INT))
        case int(value):
            return SizeType(Dim.of(value))
        case float():
            return TensorType((), solver.fresh_dtype(DTypeKind.FLOAT))
        case str():
            return STR
        case TensorData(dtype, shape):
            return TensorType(tuple(Dim.of(n) for n in shape), dtype)


def out_of_range(literal: Constant) -> list[Problem]:
    """Return the mistake of an integer that is none of its dtype, or, without one, of 64 bits."""
    value, ty = literal.value, literal.ty
    if isinstance(value, (bool, *CAPTURED)) or not isinstance(value, int):
        return []
    dtype = ty.dtype if isinstance(ty, TensorType) else int64
    if not isinstance(dtype, DType) or dtype.kind is not DTypeKind.INT or fits(value, dtype):
        return []
    return [NumberOutOfRange(literal.span, value, dtype.name)]
