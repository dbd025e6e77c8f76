"""Inputs on which the rules of an operator are tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias, final

from ...dataclass import dataclass


@final
@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A random tensor for a sample: shape, dtype, range of elements, what its diagonal is above."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0
    contiguous: bool = True
    diagonal: float = 0.0


SampleArg: TypeAlias = "TensorSpec | tuple[SampleArg, ...] | float | int | bool | str | None"


@final
@dataclass(frozen=True, slots=True)
class Sample:
    """One input of an operator, for the rule tests: operands in order, attributes by name."""

    operands: tuple[SampleArg, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    smooth: bool = True
    """False where finite differences are meaningless (a kink or a tie in range)."""
