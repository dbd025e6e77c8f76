"""The functions of real numbers by the C library, lane by lane: the exact mode.

Those of float32 go through float64, so they are rounded all but correctly; those of float64 have
the error of the library, about one unit in the last place.
"""

from __future__ import annotations

from typing import Final

from .text import Definition

_OF_ONE: Final = (
    *("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc"),
)


def _lanes(op: str, parameters: str, value: str) -> str:
    return (
        f"$F ${op}({parameters}) {{\n    $F r;\n"
        f"    for (int i = 0; i < $L; i++) r[i] = ($S)({value});\n    return r;\n}}"
    )


LANES: Final = {op: _lanes(op, "$F x", f"{op}((double)x[i])") for op in _OF_ONE}
"""Functions of one number, lane by lane."""

LIBRARY: Final = (
    *(Definition(op, ("f32", "f64"), body, ulp=1) for op, body in LANES.items()),
    Definition(
        "sigmoid",
        ("f32", "f64"),
        _lanes("sigmoid", "$F x", "1 / (1 + exp(-(double)x[i]))"),
        ulp=2,
    ),
    Definition(
        "power",
        ("f32", "f64"),
        _lanes("power", "$F x, $F y", "pow((double)x[i], (double)y[i])"),
        ulp=1,
    ),
)
