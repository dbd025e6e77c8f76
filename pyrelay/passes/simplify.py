"""The passes that make work for each other, repeated until none finds any.

Inlining exposes constants, known constructors and cells that are not passed around, folding
removes calls and branches, sharing and dead code shrink functions until they are small enough to
inline. The number of rounds is bounded, and every pass is linear, so the whole is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .cells import cells_to_values
from .cse import share
from .dce import remove_dead
from .fixed import Fixed, nothing_fixed
from .fold import fold
from .inline import inline

if TYPE_CHECKING:
    from ..ir.module import Module
    from .fold import Evaluate

MAX_ROUNDS: Final = 4
"""How often the passes are repeated at most."""


def simplify(
    module: Module,
    entry: str,
    evaluate: Evaluate | None = None,
    fixed: Fixed = nothing_fixed,
) -> Module:
    """Give a module in A-normal form simplified, with only what `entry` reaches.

    `evaluate` gives the value of a closed function, for operators on constants; without it they
    stay, as do calls of operators that are `fixed`.
    """
    for _ in range(MAX_ROUNDS):
        before = module
        module = inline(module, entry)
        module = cells_to_values(module)
        module = fold(module, evaluate, fixed)
        module = share(module)
        module = remove_dead(module, entry)
        if module is before:
            break
    return module
