"""The functions of a program that become one C text, and the decisions that their writers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, final

from ...analysis.components import components
from ...analysis.ranges import in_range
from ...ir.expr import Call, Var, type_of
from ...ir.traverse import post_order
from ...kernels.function_plan import CallSite, FunctionPlan, Planned
from ...kernels.groups import Group
from ..candidates import graph_of
from .c_types import CTypes, NotInC, is_tensor
from .dying import Dying, find_dying
from .escapes import Escapes
from .identifiers import Names
from .kernels import Kernels
from .sizes import dim_params

MOST_NODES: Final = 20_000
"""Functions that are larger together take a compiler too long."""


@final
class CProgram:
    """The functions of one C text, with their names, types, kernels and escaping variables."""

    def __init__(self, plan: FunctionPlan, kernels: Mapping[str, Group]) -> None:
        """Raises NotInC."""
        self.plan: Final = plan
        self.types: Final = CTypes(plan.module.adts)
        self.kernels: Final = Kernels(kernels)
        self.escapes: Final = Escapes(plan)
        self._in_range: Final = in_range(plan.module)
        self._sites: Final[dict[Call, int]] = {}
        units = [p for p in plan.functions() if p.place is None and not self.is_kernel(p)]
        _check(units)
        nodes = (n for p in units for n in post_order(p.function) if isinstance(n, Var))
        self.has_tensors: Final = any(is_tensor(type_of(n)) for n in nodes)
        taken = Names()
        self.names: Final = {p: f"f_{taken.fresh(p.name)}" for p in units}
        """The names of the C functions, by the functions that they are."""
        groups = components(graph_of(plan))
        self._groups: Final = {p: n for n, group in enumerate(groups) for p in group}
        self.deep: Final = self._find_deep()
        """The functions whose calls may wait for others of the same group."""

    @property
    def sites(self) -> tuple[Call, ...]:
        """The calls that may fail, in the order of their numbers."""
        return tuple(self._sites)

    @cached_property
    def dying(self) -> Mapping[Planned, Dying]:
        """The rows that die as loops walk over them, by these loops and those that make the
        rows."""
        return find_dying(self.plan, self.is_kernel)

    @cached_property
    def read_by_rows(self) -> frozenset[Var]:
        """The tensors in the room of whose rows loops make others."""
        found = (d.ahead for d in self.dying.values())
        return frozenset(ahead.made for ahead in found if ahead is not None)

    def site(self, call: Call) -> int:
        """Return the number of a call that may fail, from 1."""
        return self._sites.setdefault(call, len(self._sites) + 1)

    def callee(self, call: Call) -> Planned | None:
        """Return the function that a call names, if it names one."""
        return self.plan.callee(call)

    def is_kernel(self, planned: Planned) -> bool:
        """Return whether a function is a kernel of tensors."""
        return planned.owner is None and self.kernels.is_kernel(planned.name)

    def may_overflow(self, call: Call) -> bool:
        """Return whether the integer that a call gives may leave 64 bits."""
        return call not in self._in_range

    def jumps_to(self, source: Planned, target: Planned) -> bool:
        """Return whether a tail call of one function by another is a jump: they call each other."""
        return self._groups[source] == self._groups[target]

    def _find_deep(self) -> frozenset[Planned]:
        found = {
            self._groups[callee]
            for callee in self._groups
            for site in callee.sites
            if self._waits(site, callee)
        }
        return frozenset(p for p, group in self._groups.items() if group in found)

    def _waits(self, site: CallSite, callee: Planned) -> bool:
        """Return whether a function waits for a call of another one of its group."""
        caller, is_tail = site.caller, site.is_tail
        while caller.place is not None:
            caller, is_tail = caller.place.caller, is_tail and caller.place.is_tail
        return not is_tail and self._groups[caller] == self._groups[callee]


def _check(units: Sequence[Planned]) -> None:
    """Raise NotInC for functions that C cannot have."""
    for planned in units:
        if planned.owner is not None:
            why = "is a value" if planned.escapes else "is no loop"
            raise NotInC(f"its local function `{planned.name}` {why}")
        if planned.calls_unknown:
            raise NotInC("it calls a function that is a value")
        dim_params(planned.function)
    nodes = sum(1 for p in units for _ in post_order(p.function.body))
    if nodes > MOST_NODES:
        raise NotInC("it is so long that a compiler would take too long")
