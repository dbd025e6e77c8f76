"""Polynomials in C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from .text import MathFunction

Coefficients: TypeAlias = Mapping[str, Sequence[float]]
"""The coefficients of a polynomial by element type, that of the constant term first."""


def horner(result: str, variable: str, coefficients: Coefficients, instance: MathFunction) -> str:
    """Return the lines that compute a polynomial and name it."""
    *rest, last = coefficients[instance.element.name]
    lines = [f"    $F {result} = $splat({last!r});"]
    lines += [f"    {result} = $mad({result}, {variable}, $splat({c!r}));" for c in reversed(rest)]
    return "\n".join(lines)
