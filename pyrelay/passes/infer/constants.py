"""Number literals that no dtype of theirs has."""

from __future__ import annotations

from ...diagnostics.catalogue.types import NumberOutOfRange
from ...diagnostics.diagnostic import Problem
from ...ir.expr import Constant
from ...ir.ops.captured import CAPTURED
from ...ir.types import DType, DTypeKind, TensorType, fits, int64


def out_of_range(literal: Constant) -> list[Problem]:
    """Return the mistake of an integer that is none of its dtype, or, without one, of 64 bits."""
    value, ty = literal.value, literal.ty
    if isinstance(value, (bool, *CAPTURED)) or not isinstance(value, int):
        return []
    dtype = ty.dtype if isinstance(ty, TensorType) else int64
    if not isinstance(dtype, DType) or dtype.kind is not DTypeKind.INT or fits(value, dtype):
        return []
    return [NumberOutOfRange(literal.span, value, dtype.name)]
