"""Forward derivatives of first-order functions, one function for each choice of varied leaves.

Masks come from the activity analysis, before anything is written: those of a group of recursive
functions are solved together, so a member can call the others' derivatives before these exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...ir.expr import Function, type_of
from ...ir.traverse import Steps
from ..deriving.activity import Activity, MaskFlow, active_cells
from ..deriving.cotangents.cells import Cells
from ..deriving.cotangents.masks import ones
from ..deriving.ruled import rule_of
from ..deriving.tangent_rules import captured_is_varied, has_tangent_rule, pushed
from .instances import Instance
from .sweep import Sweep

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from ..deriving.workspace import Workspace
    from .transposed import Transposed


@final
class Derivation:
    """Derives instances into a store."""

    def __init__(self, space: Workspace, transposed: Transposed, problems: list[Problem]) -> None:
        self.space: Final = space
        self.transposed: Final = transposed
        self.problems: Final = problems
        """The obstacles, collected while everything else is derived."""
        self._known: Final[dict[Cells, _Derivation]] = {}

    def instance(self, name: str, varied: int) -> Steps[Instance]:
        """Return the instance of a function for a mask of its parameters, with tangents flowing
        through those cells that can change its result."""
        result = type_of(self.space.graph.source(name).body.result)
        useful = ones(self.space.leaves.width(result))
        cells = yield active_cells(self.space, name, varied, useful)
        if cells not in self._known:
            self._known[cells] = _Derivation(self, cells)
        return (yield self._known[cells].instance(name, varied))


@final
class _Derivation:
    """Derives instances for one choice of active cells."""

    def __init__(self, shared: Derivation, cells: Cells) -> None:
        self.space: Final = shared.space
        self.transposed: Final = shared.transposed
        self.problems: Final = shared.problems
        self.cells: Final = cells
        self._activity: Final = Activity(self.space, cells, cells)
        self._instances: Final[dict[tuple[str, int], Instance]] = {}

    def instance(self, name: str, varied: int) -> Steps[Instance]:
        """Return the instance of a function for a mask of its parameters."""
        key = (name, varied)
        if key in self._instances:
            return self._instances[key]
        flow = yield self._activity.varied(name, varied)
        group = {n: self._declared(n, flow) for n in self.space.graph.group(name) or (name,)}
        group = {n: i for n, i in group.items() if i is not None}
        for member in group.values():
            self._instances.setdefault((member.source, member.varied), member)
        # Inside a recursion more may vary than at its first call.
        self._instances[key] = group[name]
        for member in group.values():
            if not member.is_constant:
                yield self._define(member, flow, group)
        return self._instances[key]

    def _declared(self, name: str, flow: MaskFlow) -> Instance | None:
        """Return the instance of a function, which is yet to be defined; None for a member of a
        group that no call reaches."""
        if name not in flow.inward:
            return None
        works_on_cells = not self.cells.isdisjoint(self.space.cell_use.of(name))
        moved = flow.outward.get(name, 0)
        is_constant = not moved and not works_on_cells
        function = name if is_constant else self.space.store.function_name(f"{name}_jvp")
        return Instance(name, flow.inward[name], moved, function, works_on_cells)

    def _define(
        self, instance: Instance, flow: MaskFlow, group: dict[str, Instance]
    ) -> Steps[None]:
        source = self.space.graph.source(instance.source)
        if has_tangent_rule(source.function):
            self._pushed(source.function, instance)
            return
        if rule_of(source.function) is not None:
            made = self.transposed.function(source.function, instance)
            self.space.store.functions[instance.function] = made
            return
        masks = yield self._activity.varied_in(source, instance.varied, flow)
        function = yield Sweep(self, source, instance, masks, group).function()
        self.space.store.functions[instance.function] = function

    def _pushed(self, source: Function, instance: Instance) -> None:
        """Define the instance of a function by the rule that its user wrote."""
        problem = captured_is_varied(self.space, source, instance.varied)
        if problem is not None and problem not in self.problems:
            self.problems.append(problem)
        name = instance.function
        made = pushed(self.space, source, instance.varied, instance.moved, name)
        self.space.store.functions[name] = made
