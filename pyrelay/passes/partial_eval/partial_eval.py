"""Partial evaluation as a pass."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, final

from ...analysis.retype import types_in
from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.equality import alpha_equal
from ...ir.traverse import nodes_of
from ...ir.types import AdtType, subtypes
from ...ir.verify import Stage
from ..base import Context, Evaluate, Opaque, Pass, nothing_opaque
from ..closures import NotFirstOrder, first_order
from ..simplify.dce import remove_dead
from ..simplify.inline import inline_calls
from ..simplify.promote_refs import promote_refs
from .earlier import Earlier
from .operators import Operators
from .specialise import Specialiser

if TYPE_CHECKING:
    from ...ir.module import Module


MAX_ROUNDS: Final = 3
"""How often a residual program is partially evaluated at most."""


@final
@dataclass(frozen=True, slots=True)
class PartialEvaluate(Pass):
    """Run what known values decide; specialise recursive functions to known arguments.

    With `fast_math`, a sum with zero is its other operand: -0.0 becomes 0.0 in places.
    """

    name: ClassVar = "partial-eval"
    needs: ClassVar = Stage.DERIVED

    fast_math: bool = False

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return partially_evaluated(
            module, context.entry, context.evaluate, context.opaque, fast_math=self.fast_math
        )


def partially_evaluated(
    module: Module,
    entry: str,
    evaluate: Evaluate | None = None,
    opaque: Opaque = nothing_opaque,
    *,
    fast_math: bool = False,
) -> Module:
    """Return the residual program of an entry: what is left of a module in A-normal form without
    transforms when all that is known in it is computed.

    `evaluate` computes operators on constants; without it only arithmetic on integers is, and calls
    of operators that are `opaque` never are. Functions are made data first, so known functions are
    known data; where functions go into or out of the entry, they stay functions, and are not looked
    into. (Jones, Gomard and Sestoft, Partial Evaluation and Automatic Program Generation, 1993.)
    """
    operators = Operators(evaluate, opaque, fast_math=fast_math)
    earlier = Earlier()
    while earlier.rounds < MAX_ROUNDS:
        residual, earlier = _round(module, entry, operators, earlier)
        if _is_equal(module, residual):
            return module
        module = residual
    return module


def _round(
    module: Module, entry: str, operators: Operators, earlier: Earlier
) -> tuple[Module, Earlier]:
    """Return the residual program without dead code, and the work of this round and those before
    it. What variants return is unknown to their callers; one that turns out not to reach itself is
    unfolded in the next round."""
    try:
        whole = first_order(module, entry)
    except NotFirstOrder:
        whole = module
    specialiser = Specialiser(promote_refs(whole), operators, earlier)
    residual, forwarders = specialiser.module(entry)
    direct = inline_calls(residual, forwarders)
    left = remove_dead(promote_refs(remove_dead(direct, entry)), entry)
    return _without_unused_data(left), specialiser.done


def _without_unused_data(module: Module) -> Module:
    """Return a module with the data types that its functions mention, and those inside them."""
    nodes = nodes_of(module)
    pending = [ty for node in nodes for ty in types_in(node) if not isinstance(ty, Dim)]
    used: set[str] = set()
    while pending:
        for part in subtypes(pending.pop()):
            if isinstance(part, AdtType) and part.name in module.adts and part.name not in used:
                used.add(part.name)
                pending += (t for c in module.adts[part.name].constructors for t in c.fields)
    return replace(module, adts={n: a for n, a in module.adts.items() if n in used})


def _is_equal(left: Module, right: Module) -> bool:
    return left.functions.keys() == right.functions.keys() and all(
        alpha_equal(function, right.functions[name]) for name, function in left.functions.items()
    )
