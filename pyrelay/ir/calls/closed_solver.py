"""Solvers for type rules whose operands are all known: nothing is left to be found or chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ..dims import Dim
from ..op import Clash
from ..types import Type, show

if TYPE_CHECKING:
    from ..names import Names


class Settled:
    """The base of such solvers, which differ in when two types agree."""

    @property
    def stretches(self) -> bool:
        """Operands have been stretched."""
        return False

    @property
    def guessing(self) -> bool:
        """Nothing is left to be chosen here."""
        return True

    @property
    def settling(self) -> bool:
        """Nothing more will become known."""
        return True

    def resolve(self, ty: Type) -> Type:
        """Return the type: there is nothing left to fill in."""
        return ty

    def resolve_dim(self, dim: Dim) -> Dim:
        """Return the dim: there is nothing left to fill in."""
        return dim

    def is_found_running(self, dim: Dim) -> bool:
        """No: inference has dealt with those."""
        return False


@final
class ClosedSolver(Settled):
    """The solver for code under construction: the program that the types come from has been
    checked, so equations between dims hold by its assumptions."""

    def __init__(self, names: Names) -> None:
        self._names: Final = names

    def unify(self, left: Type, right: Type) -> None:
        """Check that two types are of one kind. Raises Clash."""
        if not isinstance(left, type(right)):
            raise Clash(f"{show(left)} is not {show(right)}")

    def unify_dims(self, left: Dim, right: Dim) -> None:
        """Check that two dims may be equal. Raises Clash."""
        if (left - right).constant not in (None, 0):
            raise Clash(f"{left} is not {right}")

    def fresh_dim(self, hint: str) -> Dim:
        """Return a size of a new name."""
        return Dim.of(self._names.fresh(hint))
