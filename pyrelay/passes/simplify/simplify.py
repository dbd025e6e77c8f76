"""The passes that make work for each other, repeated until none finds any.

Inlining exposes constants, known constructors and cells that are not passed around, folding
removes calls and branches, sharing and dead code shrink functions until they are small enough to
inline. The number of rounds is bounded, and every pass is linear, so the whole is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.verify import Stage
from ..base import Context, Evaluate, Opaque, Pass, nothing_opaque
from .cse import share
from .dce import remove_dead
from .fold import fold
from .inline import inline
from .local_shadows import with_local_shadows
from .promote_refs import promote_refs

if TYPE_CHECKING:
    from ...ir.module import Module

MAX_ROUNDS: Final = 4
"""How often the passes are repeated at most."""


def simplify(
    module: Module, entry: str, evaluate: Evaluate | None = None, opaque: Opaque = nothing_opaque
) -> Module:
    """Return a module in A-normal form simplified, with only what `entry` reaches.

    `evaluate` gives the value of a closed function, for operators on constants; without it they
    stay, as do calls of operators that are `opaque`.
    """
    for _ in range(MAX_ROUNDS):
        before = module
        module = inline(module, entry)
        module = promote_refs(with_local_shadows(module))
        module = fold(module, evaluate, opaque)
        module = share(module)
        module = remove_dead(module, entry)
        if module is before:
            break
    return module


@final
@dataclass(frozen=True, slots=True)
class Simplify(Pass):
    """Inline, fold, share and remove dead code, in rounds."""

    name: ClassVar = "simplify"
    needs: ClassVar = Stage.ANF
    is_idempotent: ClassVar = True

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return simplify(module, context.entry, context.evaluate, context.opaque)
