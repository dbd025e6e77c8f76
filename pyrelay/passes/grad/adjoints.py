"""Adjoints: the cotangents of the leaves of variables so far, while a function is reversed.

A cotangent is an atom of the backward code under construction; a leaf without one has zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ...ir.expr import Expr, Var, type_of
from ...ir.types import Type
from ...operators.builder import Builder, Value

if TYPE_CHECKING:
    from ...ir.names import Names
    from ..deriving.cotangents.adt_cotangents import Border
    from ..deriving.cotangents.cotangents import Cotangents
    from .code import Work

Key = tuple[Var, int]


class Adjoints:
    """The cotangents of one function, and the builder of its backward code."""

    def __init__(self, cotangents: Cotangents, border: Border, work: Work, names: Names) -> None:
        self.cotangents: Final = cotangents
        self.leaves: Final = cotangents.leaves
        self.border: Final = border
        self.work: Final = work
        self.names: Final = names
        self.builder = Builder(work.source.function.span, names)
        self.cotangents_of: Final[dict[Key, Expr]] = {}
        self.logs: Final[list[dict[Key, Expr | None]]] = []
        """The changes of each branch around, with the cotangents before it."""

    def get(self, key: Key) -> Expr | None:
        """Return the cotangent of a leaf so far."""
        return self.cotangents_of.get(key)

    def set(self, key: Key, atom: Expr) -> None:
        """Replace the cotangent of a leaf."""
        self._log(key)
        self.cotangents_of[key] = atom

    def take(self, var: Var) -> list[Expr | None]:
        """Return and forget the cotangents of all leaves of a variable."""
        found: list[Expr | None] = []
        for leaf in range(self.width(var)):
            key = (var, leaf)
            found.append(self.cotangents_of.get(key))
            if found[-1] is not None:
                self._log(key)
                del self.cotangents_of[key]
        return found

    def contribute(self, atom: Expr, leaf: int, ct: Expr) -> None:
        """Add to the cotangent of a leaf of an atom, if it is varied."""
        if not self.is_varied(atom, leaf):
            return
        assert isinstance(atom, Var)
        old = self.cotangents_of.get((atom, leaf))
        if old is not None:
            leaf_type = self.leaves.of(type_of(atom))[leaf]
            ct = self.cotangents.add(self.builder, leaf_type, old, ct).atom
        self.set((atom, leaf), ct)

    def contribute_all(self, atom: Expr, cts: Sequence[Expr | None]) -> None:
        """Add to the cotangents of all leaves of an atom."""
        for leaf, ct in enumerate(cts):
            if ct is not None:
                self.contribute(atom, leaf, ct)

    def is_varied(self, atom: Expr, leaf: int) -> bool:
        """Return whether a leaf of an atom can have a cotangent."""
        return isinstance(atom, Var) and bool(self.work.varied.get(atom, 0) >> leaf & 1)

    def is_varied_anywhere(self, atom: Expr) -> bool:
        """Return whether any leaf of an atom can have a cotangent."""
        return isinstance(atom, Var) and bool(self.work.varied.get(atom, 0))

    def zero(self, leaf: Type) -> Value:
        """Return the zero of a leaf."""
        return self.cotangents.zero(self.builder, leaf)

    def _log(self, key: Key) -> None:
        if self.logs:
            self.logs[-1].setdefault(key, self.cotangents_of.get(key))

    def width(self, atom: Expr) -> int:
        """Return the number of leaves of an atom."""
        return self.leaves.width(type_of(atom))

    def places(self, atoms: Sequence[Expr]) -> Iterator[tuple[Expr, int, Type]]:
        """Return all leaves of atoms: the atom, the index in it, and the cotangent's type."""
        for atom in atoms:
            for leaf, ty in enumerate(self.leaves.of(type_of(atom))):
                yield atom, leaf, ty
