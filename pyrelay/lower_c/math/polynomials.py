"""Polynomials in C, and constants that two element types have with different digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from .text import Instance

Coefficients: TypeAlias = Mapping[str, Sequence[float]]
"""The coefficients of a polynomial by element type, that of the constant term first."""

CONSTANTS: Final = {
    "f32": {
        "LN2_HIGH": "0.693359375",  # few digits, so that its products with exponents are exact
        "LN2_LOW": "-2.1219444005469057e-4",
        "MAGIC": "0x1.8p23",
        "MAGIC_BITS": "0x4b400000",
        "BIAS": "127",
        "MANTISSA": "23",
        "FRACTION": "0x007fffff",
        "ONE_BITS": "0x3f800000",
        "ROOT_HALF_BITS": "0x3f3504f3",
        "SMALLEST": "0x1p-126",
        "SHIFT": "24",
        "EXP_LOW": "-105.0",
        "EXP_HIGH": "90.0",
        "EXPM1_LOW": "-26.0",
    },
    "f64": {
        "LN2_HIGH": "0x1.62e42fee00000p-1",
        "LN2_LOW": "1.90821492927058770002e-10",
        "MAGIC": "0x1.8p52",
        "MAGIC_BITS": "0x4338000000000000",
        "BIAS": "1023",
        "MANTISSA": "52",
        "FRACTION": "0x000fffffffffffff",
        "ONE_BITS": "0x3ff0000000000000",
        "ROOT_HALF_BITS": "0x3fe6a09e667f3bcd",
        "SMALLEST": "0x1p-1022",
        "SHIFT": "54",
        "EXP_LOW": "-750.0",
        "EXP_HIGH": "712.0",
        "EXPM1_LOW": "-60.0",
    },
}
"""The meanings of capitalised words in definitions."""


def horner(result: str, variable: str, coefficients: Coefficients, instance: Instance) -> str:
    """Return the lines that compute a polynomial and name it."""
    *rest, last = coefficients[instance.element.name]
    lines = [f"    $F {result} = $splat({last!r});"]
    lines += [f"    {result} = $mad({result}, {variable}, $splat({c!r}));" for c in reversed(rest)]
    return "\n".join(lines)


def with_constants(text: str, instance: Instance) -> str:
    """Return a text with the constants of its elements in the place of words in capitals."""
    constants = CONSTANTS[instance.element.name]
    for word in sorted(constants, key=len, reverse=True):
        text = text.replace(word, constants[word])
    return text
