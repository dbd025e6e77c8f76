"""The limits of partial evaluation, and what a run has used of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Final, final

from ...dataclass import dataclass
from ...ir.module import Module
from ...ir.traverse import pre_order

MAX_ROUNDS: Final = 4
"""How often a residual program is partially evaluated before it counts as one that grows."""
MAX_LIMITED: Final = 2
"""How many of these rounds may meet a limit."""
MAX_CALLS: Final = 4_000
"""How many calls an attempt may make, and operations emit. One that makes more is abandoned, and
the next may make half as many, so recursion that never ends wastes no more than two."""
FEWEST_CALLS: Final = 100
"""How many calls abandoned attempts must have left for another one."""
MAX_UNFOLDED: Final = 500
"""Up to how many nodes, with all that they call, functions are unfolded for unknown arguments."""
MAX_VARIANTS: Final = 64
"""How many variants of a function a round makes before all its arguments are unknown."""
MAX_WEIGHT: Final = 1_000
"""How many parts a known argument may have that a variant is for; larger data is passed."""
MAX_OPERATIONS: Final = 20_000
"""How many operations all residual functions may have before nothing is unfolded any more."""
MAX_STEPS: Final = 30_000
"""How many nodes a round evaluates, beside `STEPS_PER_NODE` for each of the program, before nothing
is unfolded any more."""
STEPS_PER_NODE: Final = 2


@final
@dataclass(frozen=True, slots=True)
class Run:
    """A run of partial evaluation, round after round, of one program."""

    closed: Collection[str] | None = frozenset()
    """The recursive functions of the program whose calls are not looked into; None for all."""
    limited: frozenset[str] = frozenset()
    """The functions of the program that met a limit in any of its rounds."""
    is_limited: bool = False
    """Whether any did in the last round."""
    is_exhausted: bool = False
    """Whether the last round evaluated more nodes than it may."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """The function of the program that each residual function is a variant of."""

    def origin(self, name: str) -> str:
        """Return the function of the program that a function is, or is a variant of."""
        return self.origins.get(name, name)

    def is_closed(self, name: str) -> bool:
        """Return whether calls of a recursive function are not looked into."""
        return self.closed is None or self.origin(name) in self.closed


def max_steps(module: Module) -> int:
    """Return how many nodes a round may evaluate of a program."""
    nodes = sum(1 for f in module.functions.values() for _ in pre_order(f.body))
    return MAX_STEPS + STEPS_PER_NODE * nodes
