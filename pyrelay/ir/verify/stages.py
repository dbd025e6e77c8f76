"""The stages a module goes through, and what holds at each."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from . import forms, scopes, typing
from .scene import Invariant, ModuleFacts, Scene, VerifyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..module import Module


class Stage(Enum):
    """How far a module has come; `docs/architecture.md` has the table of stages."""

    TRANSLATED = "translated"
    TYPED = "typed"
    ANF = "anf"
    FIRST_ORDER = "first-order"
    DERIVED = "derived"
    FLAVOURED = "flavoured"
    REGIONS = "regions"


_TRANSLATED: Final = (
    Invariant("every variable is bound once", scopes.bound_once, is_local=False),
    Invariant("variables are used in scope", scopes.in_scope),
    Invariant("every node has a span", scopes.has_spans),
    Invariant("what is mentioned exists", scopes.mentions_exist),
    Invariant("calls of operators are whole", scopes.calls_are_whole),
    Invariant("recursive blocks bind functions", scopes.rec_blocks_bind_functions),
)
_TYPED: Final = (
    *_TRANSLATED,
    Invariant("types are complete", typing.types_are_complete),
    Invariant("attributes are in normal form", typing.attributes_are_normal),
    Invariant("operators follow their type rules", typing.operators_follow_their_rules),
    Invariant("calls agree with what they call", typing.calls_agree),
    Invariant("types agree with their parts", typing.nodes_agree),
    Invariant("patterns fit their values", typing.patterns_fit),
)
_ANF: Final = (
    *_TYPED,
    Invariant("operands are atoms", forms.operands_are_atoms),
    Invariant("bindings are flat", forms.bindings_are_flat),
    Invariant("bodies end in tails", forms.bodies_end_in_tails),
)
_FIRST_ORDER: Final = (
    *_ANF,
    Invariant("functions are global", forms.functions_are_global),
    Invariant("values are first-order", forms.values_are_first_order, is_local=False),
)
_DERIVED: Final = (*_ANF, Invariant("transforms are expanded", forms.transforms_are_expanded))
_FLAVOURED: Final = (
    *_DERIVED,
    Invariant("flavours are effects", forms.flavours_are_effects, is_local=False),
)

INVARIANTS: Final[Mapping[Stage, tuple[Invariant, ...]]] = {
    Stage.TRANSLATED: _TRANSLATED,
    Stage.TYPED: _TYPED,
    Stage.ANF: _ANF,
    Stage.FIRST_ORDER: _FIRST_ORDER,
    Stage.DERIVED: _DERIVED,
    Stage.FLAVOURED: _FLAVOURED,
    Stage.REGIONS: _FLAVOURED,
}
"""The invariants of a module at each stage, in the order in which they are checked."""


def includes(reached: Stage, needed: Stage) -> bool:
    """Return whether all that holds at one stage holds at another that a module has reached."""
    return set(INVARIANTS[needed]) <= set(INVARIANTS[reached])


_VERIFIED: Final[WeakKeyDictionary[Module, frozenset[Invariant]]] = WeakKeyDictionary()
"""The invariants that have been found to hold of modules."""


def verify(module: Module, stage: Stage, before: Module | None = None) -> None:
    """Check that everything holds of a module that should at a stage. Raises VerifyError.

    Functions that a pass left as they were in the module `before`, which has been verified, are not
    looked at again for what depends on them alone.
    """
    known = frozenset[Invariant]() if before is None else _VERIFIED.get(before, frozenset())
    facts = ModuleFacts(module)
    scenes = [Scene(facts, name, function) for name, function in module.functions.items()]
    changed = scenes
    if before is not None and _surroundings_stay(before, module):
        changed = [s for s in scenes if s.function is not before.functions.get(s.name)]
    for invariant in INVARIANTS[stage]:
        is_kept = invariant in known and (invariant.is_local or module is before)
        for scene in changed if is_kept else scenes:
            for node, detail in invariant.check(scene):
                raise VerifyError(scene.name, node, invariant, detail)
    _VERIFIED[module] = known.union(INVARIANTS[stage])


def _surroundings_stay(before: Module, module: Module) -> bool:
    """Return whether a module has the data types of another, and functions of the same types."""
    return all(module.adts.get(n) == adt for n, adt in before.adts.items()) and all(
        old is new or (new is not None and (old.ty, old.type_params) == (new.ty, new.type_params))
        for old, new in ((f, module.functions.get(n)) for n, f in before.functions.items())
    )
