"""The state that the functions of one program share while they are written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, final

from ...analysis.ranges import in_range
from ...ir.expr import Call
from ...kernels.function_plan import FunctionPlan, Planned
from ...operators.host.debugging import is_debugged
from .data import DataLayout
from .liveness import Liveness
from .names import Identifiers
from .ownership import Ownership
from .pool import Pool


@final
class HostProgram:
    """The plan, the globals, and the names of global functions. `deep_values` says whether calls
    of function values may recurse."""

    def __init__(
        self, plan: FunctionPlan, pool: Pool, layout: DataLayout, *, deep_values: bool
    ) -> None:
        self.plan: Final = plan
        self.pool: Final = pool
        self.layout: Final = layout
        self.deep_values: Final = deep_values
        self.in_range: Final = in_range(plan.module)
        """The calls whose integers need no look at whether they fit into 64 bits."""
        self.sites: Final[dict[Any, str | None]] = {}
        """The calls that can be done in several ways, by operator, types and attributes."""
        self._liveness: Final[dict[Planned, Liveness]] = {}
        self._ownership: Final = Ownership(plan, self.liveness) if plan.updates else None
        self.is_debugged: Final = is_debugged(plan.module)
        """Whether a debugger is to see the names and lines of the source."""
        names = Identifiers()
        self._names: Final = {p: names.fresh(p.name) for p in plan.by_global.values()}
        self._outlined: Final[dict[str, int]] = {}

    def function_names(self) -> Iterable[str]:
        """Return the Python names of all global functions."""
        return self._names.values()

    def name(self, planned: Planned) -> str:
        """Return the Python name of a global function."""
        return self._names[planned]

    def outlined_name(self, home: Planned, kind: str) -> str:
        """Return a new name for a piece of a function that is taken out of line."""
        base = f"{self._names[home]}__{kind}"
        count = self._outlined.get(base, 0) + 1
        self._outlined[base] = count
        return f"{base}{count}"

    def may_overwrite(self, call: Call) -> bool:
        """Return whether an operator's call may write into the operand that the operator names."""
        return self._ownership is not None and self._ownership.may_overwrite(call)

    def copies(self, call: Call, operand: int) -> bool:
        """Return whether a function's call passes a copy of an argument, to be overwritten
        there."""
        return self._ownership is not None and self._ownership.copies(call, operand)

    def liveness(self, unit: Planned) -> Liveness:
        """Return where values die in a unit."""
        if unit not in self._liveness:
            self._liveness[unit] = Liveness(self.plan, unit)
        return self._liveness[unit]
