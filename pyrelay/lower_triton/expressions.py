"""The words of Triton: operations, functions, numbers and dtypes."""

from __future__ import annotations

import math
from typing import Final

from ..ir.types import DType, DTypeKind
from ..kernels.plans.text import Text, negative

INFIX: Final = {
    **{op: op for op in ("&", "|", "^", "<<", ">>")},
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "quotient": "//",
    "rest": "%",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
"""Operations that are written between their operands."""

TRITON: Final = {
    **{op: op for op in ("abs", "log", "sin", "cos", "erf", "floor", "ceil", "where")},
    "least": "minimum",
    "most": "maximum",
}
"""Operations that are functions of Triton itself; the others are those of `math`."""

FUNCTIONS: Final = frozenset(
    (
        *("exp", "expm1", "log1p", "sigmoid", "tanh", "sinh", "cosh", "tan", "atan", "asin"),
        *("acos", "square_root", "reciprocal_root", "round_even", "sign", "power"),
        *("integer_power", "floor_divide", "remainder", "integer_floor_divide"),
        *("integer_remainder", "minimum", "maximum", "times"),
        *("first_largest", "first_smallest"),
        *("add_exponential", "relative_to", "add_shifted", "moments", "squares_around"),
    )
)
"""The functions of `math`."""


def literal(value: float) -> Text:
    """Return a number as it is written in a kernel."""
    if isinstance(value, float) and not math.isfinite(value):
        name = "nan" if math.isnan(value) else "inf"
        text = Text(f'float("{name}")')
        return negative(text) if value == -math.inf else text
    if isinstance(value, bool) or math.copysign(1.0, value) > 0:
        return Text(repr(value))
    return negative(Text(repr(-value)))


def type_text(dtype: DType) -> str:
    """Return Triton's name of a dtype."""
    return "tl.int1" if dtype.kind is DTypeKind.BOOL else f"tl.{dtype.name}"
