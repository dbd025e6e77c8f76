"""Steps of optimisers that are stored over what they move.

A step computes each new parameter, each moment and the counts from the old ones. Where nothing
aliases the old contents of the cell, a kernel stores the new values in the storage of the old ones
(`overwrite_all`), and the cell keeps its contents: a step needs no memory of its own, and touches
each tensor once. A program that calls torch operator by operator would pay a copy for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import final

from ...analysis.aliasing import RefAliasing
from ...dataclass import dataclass
from ...ir.expr import Binding, Call, Expr, RefWrite, Tuple, TupleGet, Var
from ...ir.op import Op
from ...ir.types import UNIT, TensorType
from ...operators.builder import Builder
from ...operators.composite.descent import overwrite_all
from .cell_contents import Contents, Path


@final
@dataclass(frozen=True, slots=True)
class StepUpdate:
    """A write whose new values are each computed from the one that they replace: pairs of the old
    and the new value. `spare` are the tuples that are needed no more."""

    write: RefWrite
    pairs: tuple[tuple[Var, Var], ...]
    spare: frozenset[Expr]

    def take_part(self, aliasing: RefAliasing) -> None:
        """Note that the old values are stored to when the write is made, and lose what must not be
        among the new ones."""
        for old, new in self.pairs:
            aliasing.lost.update(aliasing.by(new))
            aliasing.use_at(old, aliasing.place[self.write])

    def settled(self, _: RefAliasing) -> StepUpdate:
        """Return the update: all new values are computed before the first is stored."""
        return self

    def bindings(self, var: Var) -> list[Binding]:
        """Return the bindings that take the place of the write's."""
        builder = Builder(self.write.span)
        sides = zip(*self.pairs, strict=True)
        old, new = (builder.tuple([*map(builder.value, side)]) for side in sides)
        call = Call(overwrite_all, (old.atom, new.atom), {}, ty=UNIT, span=self.write.span)
        return [*builder.bindings, Binding(var, call)]


def step_update(
    write: RefWrite, defined: Mapping[Expr, Expr], uses: Counter[Expr]
) -> StepUpdate | None:
    """Return a write as the steps of an optimiser; None if it replaces anything by a value that is
    not computed from it, or that something else needs."""
    contents = Contents(write, defined, uses)
    pairs: list[tuple[Var, Var]] = []
    spare: set[Expr] = set()
    for atom, path in contents.parts():
        if contents.stays(atom, path) or (isinstance(atom, Tuple) and not atom.fields):
            continue
        if contents.fields(atom) is not None:
            spare.add(atom)
            continue
        old = _replaced(atom, path, contents)
        if old is None or uses[atom] != 1 or not isinstance(atom, Var):
            return None
        pairs.append((old, atom))
    return StepUpdate(write, tuple(pairs), frozenset(spare)) if pairs else None


def _replaced(atom: Expr, path: Path, contents: Contents) -> Var | None:
    """Return the tensor at a path of a cell, if an operator computes the atom from it."""
    value = contents.defined.get(atom)
    if isinstance(value, TupleGet):
        value = contents.defined.get(value.value)
    if not isinstance(value, Call) or not isinstance(value.callee, Op):
        return None
    tensors = (a for a in value.args if isinstance(a, Var) and isinstance(a.ty, TensorType))
    return next((t for t in tensors if contents.stays(t, path)), None)
