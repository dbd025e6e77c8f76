"""The static plan of a region's memory: which of its values share storage.

Every value that is computed in a region and not given back gets a *slot*. Two values may have one
slot if the first is dead when the second is made, and its slot is provably large enough, whatever
the sizes. The plan is first fit over the values in order, among slots of the same number of bytes or
of provably more (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
2020, compare such plans); results are never in it, since they live on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, final

from ...ir.bounds import at_most
from ...ir.dims import ZERO, Dim
from ...ir.expr import Call, Expr, Function, GlobalVar, Tuple, TupleGet, Var, type_of
from ...ir.op import Op
from ...ir.storage import makes_storage
from ...ir.types import TensorType
from .cost import size_of
from .items import estimate
from .reading import straight_line


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """Where the values of a region that do not outlive it are stored: `slots` gives the number of
    the slot of a variable, `sizes` the bytes of each slot."""

    slots: Mapping[Var, int]
    sizes: tuple[Dim, ...]

    @property
    def bytes(self) -> Dim:
        """The bytes that all slots take together."""
        total = ZERO
        for size in self.sizes:
            total = total + size
        return total

    @property
    def unshared(self) -> Dim:
        """The bytes that the values would take with storage of their own."""
        total = ZERO
        for var in self.slots:
            total = total + size_of(type_of(var))
        return total


def plan_memory(region: Function, kernels: Iterable[str]) -> Plan:
    """Give the plan of a region function. Only what kernels make is planned: torch's operators
    allocate for themselves."""
    return _Planner(region, frozenset(kernels)).plan()


@final
class _Planner:
    """One walk over a region, in order."""

    def __init__(self, region: Function, kernels: frozenset[str]) -> None:
        self._bindings, self._end = straight_line(region.body)
        self._kernels: Final = kernels
        self._holds: Final[dict[Var, tuple[Var, ...]]] = {}
        self._last: Final[dict[Var, int]] = {}
        self._made: Final[dict[Var, int]] = {}

    def plan(self) -> Plan:
        """Give the slots."""
        self._follow()
        free: list[int] = []
        sizes: list[Dim] = []
        slots: dict[Var, int] = {}
        ending: dict[int, list[Var]] = {}
        for var, time in self._made.items():
            ending.setdefault(self._last.get(var, time), []).append(var)
        making: dict[int, list[Var]] = {}
        for var, time in self._made.items():
            making.setdefault(time, []).append(var)
        for time in range(len(self._bindings)):
            for var in making.get(time, ()):
                slots[var] = _fit(size_of(type_of(var)), free, sizes)
            free += sorted({slots[v] for v in ending.get(time, ())})
        return Plan(slots, tuple(sizes))

    def _follow(self) -> None:
        """Find when each value is made and last used, through views and tuples of it."""
        for time, binding in enumerate(self._bindings):
            for var in self._held(binding.value):
                self._last[var] = time
            self._holds[binding.var] = self._given(binding.var, binding.value, time)
        forever = self._held(self._end)
        for var in forever:
            self._made.pop(var, None)

    def _held(self, value: Expr) -> tuple[Var, ...]:
        """Give the values whose storage an expression uses."""
        atoms = (value,) if isinstance(value, Var) else _operands(value)
        return tuple(v for a in atoms if isinstance(a, Var) for v in self._holds.get(a, ()))

    def _given(self, var: Var, value: Expr, time: int) -> tuple[Var, ...]:
        """Give the planned values whose storage a variable may show."""
        match value:
            case Call(GlobalVar(name)) if name in self._kernels:
                if isinstance(var.ty, TensorType):
                    self._made[var] = time
                    return (var,)
                return ()
            case TupleGet(Var() as whole) if self._is_kernel(whole):
                self._made[var] = self._time[whole]
                return (var,)
            case Call(Op() as op) if makes_storage(op):
                return ()
            case _:
                return self._held(value)
