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

from ..ir.expr import Binding, Call, Constant, Expr, GlobalVar, Tuple, TupleGet, Var, type_of
from ..ir.op import Contraction, Op, Pointwise, Reduction, View
from ..ir.types import UNIT, TensorType, TupleType, Type, bool_, is_float
from ..operators.composite.descent import descend_in_place, overwrite, overwrite_all
from ..operators.primitive.index import index, set_at
from .fusion.nodes import gives_own_storage, mentioned
from .groups import Group
from .reading import reshaped_operand, straight_line

_SAFE: Final = frozenset({descend_in_place, index, overwrite, overwrite_all, set_at})
"""Operators of a library that fail only where integers say so."""


def early_updates(bindings: Sequence[Binding], groups: Mapping[str, Group]) -> Mapping[Var, Var]:
    """Return updates among the bindings of a region, by the variables that they bind, with the
    kernels before which they run. `groups` are those of the kernels."""
    found: dict[Var, Var] = {}
    storage = _Storage(groups)
    barrier = -1
    for place, binding in enumerate(bindings):
        needed = storage.needed(binding)
        if _may_stop(binding.value, groups):
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


def _may_stop(value: Expr, groups: Mapping[str, Group]) -> bool:
    """Return whether the program may stop where a binding is computed."""
    group = _group(value, groups)
    if group is not None:
        bindings, _ = straight_line(group.function.body)
        return not all(_is_safe(b.value) for b in bindings)
    # A call without arguments is a size.
    return isinstance(value, Call) and bool(value.args) and reshaped_operand(value) is None


def _is_safe(value: Expr) -> bool:
    """Return whether nothing of a kernel can fail: it computes with floats and bools alone, and
    none of these says where something lies, or divides."""
    match value:
        case Var() | Constant() | Tuple() | TupleGet():
            return True
        case Call(Op() as op, args):
            is_plain = isinstance(op.lowering, View | Pointwise | Reduction | Contraction)
            is_known = is_plain or op in _SAFE
            return not args or (is_known and all(_has_floats(type_of(a)) for a in args))
        case _:
            return False


def _has_floats(ty: Type) -> bool:
    """Return whether a value has no integers."""
    match ty:
        case TupleType(fields):
            return all(map(_has_floats, fields))
        case TensorType(_, dtype):
            return is_float(dtype) or dtype == bool_
        case _:
            return False
