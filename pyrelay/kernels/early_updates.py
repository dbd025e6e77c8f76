"""Updates that run as soon as they can, in the launch plan of a region.

A body ends with its updates, so that what fails before them leaves everything as it was. An update
makes no value: once it has run, what it reads, such as the gradient of activations, is needed no
more. So a launcher runs it directly before the first kernel that need not come before it, and
memory never grows by that. It stays behind what reads the storage that it writes to, behind all
that may fail, and behind calls of torch, since an interrupt may come there. Variables stand for
storage of their own here: a launcher runs a region whose parameters share some in the order of the
program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

from ..ir.expr import Binding, Call, Expr, GlobalVar, Var, type_of
from ..ir.types import UNIT
from .fusion.nodes import gives_own_storage, may_stop, mentioned
from .groups import Group


def early_updates(bindings: Sequence[Binding], groups: Mapping[str, Group]) -> Mapping[Var, Var]:
    """Return updates among the bindings of a region, by the variables that they bind, with the
    kernels before which they run. `groups` are those of the kernels."""
    found: dict[Var, Var] = {}
    storage = _Storage(groups)
    barrier = -1
    for place, binding in enumerate(bindings):
        needed = storage.needed(binding)
        if may_stop(binding.value, groups):
            barrier = place
        elif type_of(binding.var) == UNIT and storage.written(binding.value):
            behind = bindings[max(barrier, needed) + 1 : place]
            kernels = (b.var for b in behind if _group(b.value, groups) and b.var not in found)
            first = next(kernels, None)
            if first is not None:
                found[binding.var] = first
        storage.note(place, binding)
    return found


def in_order(bindings: Sequence[Binding], early: Mapping[Var, Var]) -> list[Binding]:
    """Return bindings with each early update directly before its kernel."""
    before: defaultdict[Var, list[Binding]] = defaultdict(list)
    for binding in bindings:
        if binding.var in early:
            before[early[binding.var]].append(binding)
    rest = (b for b in bindings if b.var not in early)
    return [moved for b in rest for moved in (*before[b.var], b)]


@final
class _Storage:
    """Where the bindings of a region read and write storage, as far as they have been noted."""

    def __init__(self, groups: Mapping[str, Group]) -> None:
        self._groups: Final = groups
        self._shows: Final[dict[Var, frozenset[Var]]] = {}
        """The variables whose storage a value may have."""
        self._made: Final[dict[Var, int]] = {}
        self._read: Final[dict[Var, int]] = {}
        self._stored: Final[dict[Var, int]] = {}

    def written(self, value: Expr) -> frozenset[Var]:
        """Return the variables to whose storage a kernel writes."""
        group = _group(value, self._groups)
        if group is None or not isinstance(value, Call):
            return frozenset()
        return self._roots(value.args[i] for i in group.overwritten)

    def needed(self, binding: Binding) -> int:
        """Return the place of the last binding that has to come before another one; -1 if none."""
        atoms = mentioned(binding.value)
        places = (
            *(self._made.get(a, -1) for a in atoms),
            *(self._read.get(r, -1) for r in self.written(binding.value)),
            *(self._stored.get(r, -1) for r in self._roots(atoms)),
        )
        return max(places, default=-1)

    def note(self, place: int, binding: Binding) -> None:
        """Note what a binding reads and writes."""
        value, roots = binding.value, self._roots(mentioned(binding.value))
        if _group(value, self._groups) is None and not gives_own_storage(value):
            self._shows[binding.var] = roots
        self._made[binding.var] = place
        self._read.update(dict.fromkeys(roots, place))
        self._stored.update(dict.fromkeys(self.written(value), place))

    def _roots(self, atoms: Iterable[Expr]) -> frozenset[Var]:
        found = (a for a in atoms if isinstance(a, Var))
        return frozenset(r for a in found for r in self._shows.get(a, (a,)))


def _group(value: Expr, groups: Mapping[str, Group]) -> Group | None:
    match value:
        case Call(GlobalVar(name)):
            return groups.get(name)
        case _:
            return None
