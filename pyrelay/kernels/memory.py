"""The static plan of a region's memory: which of its values share storage.

Every value that is computed in a region and not given back gets a *slot*. Two values may have one
slot if the first is dead when the second is made, and its slot is provably large enough, whatever
the sizes. The plan is first fit over the values in order (Pisarchyk and Lee, "Efficient Memory
Management for Deep Neural Net Inference", 2020, compare such plans). Results are never in it, since
they live on.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Final, final

from ..dataclass import dataclass
from ..ir.bounds import at_most, estimate
from ..ir.calls.storage import makes_storage, overwritten_operand
from ..ir.dims import ZERO, Dim
from ..ir.expr import Call, Expr, Function, GlobalVar, TupleGet, Var, type_of
from ..ir.op import Op
from ..ir.types import TensorType
from .cost import size_of
from .early_updates import early_updates, in_order
from .fusion.nodes import mentioned
from .groups import Group
from .reading import straight_line


@final
@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Where the values of a region that do not outlive it are stored: `slots` gives the number of
    the slot of a variable, `sizes` the bytes of each slot. `lives` has the first and
    the last call of a kernel, counted from 0, that need a variable: where sizes are known, places
    in an arena follow from these (`arena.py`)."""

    slots: Mapping[Var, int]
    sizes: tuple[Dim, ...]
    lives: Mapping[Var, tuple[int, int]]
    early: Mapping[Var, Var]
    """The updates that run early, with the kernels before which they do (`early_updates.py`)."""

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


def plan_memory(region: Function, groups: Mapping[str, Group]) -> MemoryPlan:
    """Return the plan of a region function, whose kernels are `groups`. Only what kernels make is
    planned: torch's operators allocate for themselves."""
    return _MemoryPlanner(region, groups).plan()


@final
class _MemoryPlanner:
    """One walk over a region, in order."""

    def __init__(self, region: Function, groups: Mapping[str, Group]) -> None:
        bindings, self._end = straight_line(region.body)
        self._early: Final = early_updates(bindings, groups)
        self._bindings: Final = in_order(bindings, self._early)
        self._kernels: Final = frozenset(groups)
        self._parts: Final[dict[Var, list[Var]]] = {}
        self._holds: Final[dict[Var, tuple[Var, ...]]] = {}
        self._made: Final[dict[Var, int]] = {}
        self._last: Final[dict[Var, int]] = {}
        for binding in self._bindings:
            match binding.value:
                case TupleGet(Var() as whole):
                    self._parts.setdefault(whole, []).append(binding.var)
                case _:
                    pass

    def plan(self) -> MemoryPlan:
        """Return the slots."""
        for time, binding in enumerate(self._bindings):
            for var in self._stored(binding.value):
                self._last[var] = time
            given = self._made_by(binding.var, binding.value)
            for var in given or ():
                self._made[var] = time
                self._last[var] = time
                self._holds[var] = (var,)
            if given is None:
                self._holds.setdefault(binding.var, self._shown(binding.value))
        for var in self._stored(self._end):
            self._made.pop(var, None)
        return self._fitted()

    def _fitted(self) -> MemoryPlan:
        made: dict[int, list[Var]] = {}
        ended: dict[int, list[Var]] = {}
        for var, time in self._made.items():
            made.setdefault(time, []).append(var)
            ended.setdefault(self._last[var], []).append(var)
        slots: dict[Var, int] = {}
        sizes: list[Dim] = []
        free: list[int] = []
        for time in range(len(self._bindings)):
            for var in made.get(time, ()):
                slots[var] = _fit(size_of(type_of(var)), free, sizes)
            # What is read last here may not be written here: a kernel reads in any order.
            free += (slots[v] for v in ended.get(time, ()))
        calls = [self._made_by(b.var, b.value) is not None for b in self._bindings]
        count = [number - 1 for number in accumulate(map(int, calls))]
        lives = {var: (count[time], count[self._last[var]]) for var, time in self._made.items()}
        return MemoryPlan(slots, tuple(sizes), lives, self._early)

    def _made_by(self, var: Var, value: Expr) -> tuple[Var, ...] | None:
        """Return the values that the call of a kernel makes; None for what is no such call."""
        match value:
            case Call(GlobalVar(name)) if name in self._kernels:
                return (var,) if isinstance(var.ty, TensorType) else tuple(self._parts.get(var, ()))
            case _:
                return None

    def _stored(self, value: Expr) -> tuple[Var, ...]:
        """Return the planned values that an expression uses."""
        return tuple(v for a in mentioned(value) for v in self._holds.get(a, ()))

    def _shown(self, value: Expr) -> tuple[Var, ...]:
        """Return the planned values whose storage what an expression gives may share."""
        match value:
            case Call(Op() as op) if makes_storage(op) and overwritten_operand(op) is None:
                return ()
            case _:
                return self._stored(value)


_WINDOW: Final = 32
"""How many free slots are looked at, the latest first."""


def _fit(size: Dim, free: list[int], sizes: list[Dim]) -> int:
    """Return a slot for so many bytes and take it: one as large, else the smallest that is provably
    larger, else the largest that is provably smaller, which grows, else a new one."""
    near = free[-_WINDOW:]
    equal = [s for s in near if sizes[s] == size]
    larger = sorted((s for s in near if at_most(size, sizes[s])), key=lambda s: estimate(sizes[s]))
    smaller = sorted(
        (s for s in near if at_most(sizes[s], size)), key=lambda s: -estimate(sizes[s])
    )
    found = next(iter((*equal, *larger, *smaller)), None)
    if found is None:
        sizes.append(size)
        return len(sizes) - 1
    free.remove(found)
    if found not in larger:
        sizes[found] = size
    return found
