"""Partial evaluation as a pass."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, final

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
from . import limits
from .operators import Operators
from .specialise import Specialiser

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...ir.module import Module


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
    evaluator = _Rounds(entry, Operators(evaluate, opaque, fast_math=fast_math))
    found = evaluator.lasting(module)
    if found is not None:
        return found
    plain = evaluator.plain(module)
    found = None if plain is module else evaluator.lasting(plain)
    return plain if found is None else found


@final
@dataclass(frozen=True, slots=True)
class _Rounds:
    """Evaluates a program again and again until it stays the same, all limits fresh each time, so
    that the result is its own residual program."""

    entry: str
    operators: Operators

    def lasting(self, module: Module) -> Module | None:
        """Return the residual program if it is its own; None if none is found."""
        found, is_whole = self._settled(module)
        if found is None or is_whole or _is_equal(found, module):
            return found
        again, _ = self._settled(found)
        return found if again is not None and _is_equal(again, found) else None

    def plain(self, module: Module) -> Module:
        """Return the residual program with all recursion left as it is; the program itself where
        even that does not come to rest."""
        found, _ = self._fixed(module, None)
        return module if found is None else found

    def _settled(self, module: Module) -> tuple[Module | None, bool]:
        """Return a residual program that stays the same, and whether all of the program was looked
        into. Recursion that met a limit is left as it is where nothing else comes to rest."""
        closed: frozenset[str] = frozenset()
        while True:
            found, limited = self._fixed(module, closed)
            if found is not None or limited <= closed:
                return found, not closed
            closed |= limited

    def _fixed(
        self, module: Module, closed: Collection[str] | None
    ) -> tuple[Module | None, frozenset[str]]:
        """Return the residual program that stays the same, None if none is found; and the functions
        that met a limit."""
        run, limited = limits.Run(closed), 0
        for _ in range(limits.MAX_ROUNDS):
            residual, run = self._round(module, run)
            if run.is_exhausted:
                break
            if _is_equal(module, residual):
                return module, run.limited
            limited += run.is_limited
            if limited == limits.MAX_LIMITED:
                break
            module = residual
        return None, run.limited

    def _round(self, module: Module, run: limits.Run) -> tuple[Module, limits.Run]:
        """Return the residual program without dead code, and the run with this round. What variants
        return is unknown to their callers; one that turns out not to reach itself is unfolded in
        the next round."""
        try:
            whole = first_order(module, self.entry)
        except NotFirstOrder:
            whole = module
        specialiser = Specialiser(promote_refs(whole), self.operators, run)
        residual, forwarders = specialiser.module(self.entry)
        direct = inline_calls(residual, forwarders)
        left = remove_dead(promote_refs(remove_dead(direct, self.entry)), self.entry)
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
