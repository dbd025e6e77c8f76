"""The work of earlier rounds, which counts against the limits of this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import final

from ...dataclass import dataclass


@final
@dataclass(frozen=True, slots=True)
class Earlier:
    """The work of the rounds before this one."""

    rounds: int = 0
    steps: int = 0
    """How many nodes they have evaluated."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """The function of the first program that each residual function is a variant of. Variants of a
    variant count as variants of that, or their number would multiply by the round."""

    def origin(self, name: str) -> str:
        """Return the function of the first program that a function is, or is a variant of."""
        return self.origins.get(name, name)
