"""Tensors of any rank: `Tensor[Float, (N, ...)]` in an annotation.

Rank is not polymorphic: the function has a type for each rank at which it is used. Where a type is
declared so, it is unknown, and once a use shows its rank it must agree with the declaration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..dataclass import dataclass
from ..diagnostics.catalogue.sizes import ShapeMismatch
from ..ir.op import Clash
from ..ir.types import (
    ANY_DIMS,
    SizeType,
    TensorType,
    Type,
    is_open_shape,
    map_type,
    show,
    with_dims,
)

if TYPE_CHECKING:
    from ..diagnostics.diagnostic import Problem
    from ..diagnostics.source import Span
    from .solver import Solver
    from .worklist import Worklist


@final
@dataclass(slots=True)
class RankConstraint:
    """A type is a tensor of the dtype and the sizes that are declared beside `...`."""

    found: Type
    declared: TensorType
    span: Span
    name: str | None
    """The name that is declared so; None for a result."""

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        actual = solver.known(self.found)
        if isinstance(actual, SizeType):
            actual = solver.widen(actual)
        before = self.declared.shape.index(ANY_DIMS)
        after = len(self.declared.shape) - before - 1
        if not isinstance(actual, TensorType) or actual.rank < before + after:
            raise Clash("it has too few dims")
        solver.place = None
        solver.flow(actual, with_dims(self.declared, actual.shape[before : actual.rank - after]))

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the mistake."""
        actual = show(solver.resolve(self.found))
        return ShapeMismatch(self.span, self.name, show(self.declared), actual)


def with_ranks_open(
    ty: Type, solver: Solver, work: Worklist, span: Span, name: str | None = None
) -> Type:
    """Return a declared type with an unknown type for each tensor of any rank in it, and add what
    must hold of these."""

    def part(inner: Type) -> Type | None:
        if not is_open_shape(inner):
            return None
        hole = solver.fresh_wide()
        work.add(RankConstraint(hole, inner, span, name))
        return hole

    return map_type(ty, part, lambda dim: dim)
