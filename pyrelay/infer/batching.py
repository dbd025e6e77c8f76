"""The type of a function that is mapped over a batch: parameters and result with a dim more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from ..diagnostics.catalogue.types import NotAFunction, TransformMismatch
from ..ir.derived_types.batch_dims import NoBatch, is_batched, with_batch, without_batch
from ..ir.dims import Dim
from ..ir.expr import Batching, Options, Transform
from ..ir.op import Clash, Stuck
from ..ir.types import FnType, Type, TypeHole, show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..diagnostics.diagnostic import Problem
    from ..diagnostics.source import Span
    from ..ir.module import AdtDef
    from ..ir.transforms import Axes
    from .solver import Solver


@final
@dataclass(slots=True)
class BatchConstraint:
    """A function comes in, and the function over a batch of its arguments comes out."""

    transform: Transform
    function: Type
    result: Type
    adts: Mapping[str, AdtDef]
    options: Options = field(init=False)
    """Those of the transform."""
    made: FnType | None = None
    """The function that comes out, known to exist before its types are."""
    size: Dim | None = None
    """The size of the batch."""

    def __post_init__(self) -> None:
        self.options = self.transform.options

    @property
    def span(self) -> Span:
        """The place in the user's program."""
        return self.transform.span

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        function = solver.resolve(self.function)
        if isinstance(function, TypeHole):
            raise Stuck(function)
        if not isinstance(function, FnType):
            raise Clash("only functions are mapped over a batch")
        assert isinstance(self.options, Batching)
        axes = self._axes(len(function.params), self.options)
        if self.made is None:
            self.size = solver.fresh_dim_hole()
            self.made = FnType(tuple(solver.fresh() for _ in function.params), solver.fresh())
            solver.unify(self.result, self.made)
        try:
            stuck = [
                self._batch(solver, *each)
                for each in zip(function.params, self.made.params, axes, strict=True)
            ]
            rows = [solver.resolve(ty) for ty in function.params]
            if not any(stuck) and not any(map(is_batched, rows, axes)):
                raise Clash(
                    "nothing is batched: no parameter has an axis",
                    help="give an axis to one at least: in_axes=0",
                )
            out_axes = self.options.out_axes
            stuck.append(self._batch(solver, function.result, self.made.result, out_axes))
        except NoBatch as error:
            raise Clash(str(error), help=error.help) from None
        for hole in stuck:
            if hole is not None:
                raise Stuck(hole)

    def _axes(self, count: int, options: Batching) -> tuple[Axes, ...]:
        captures = self.transform.captures
        try:
            return (*(None,) * captures, *options.axes(count - captures))
        except ValueError as error:
            raise Clash(str(error), help="write one axis for all, or one for each") from None

    def _batch(self, solver: Solver, ty: Type, whole: Type, axes: Axes) -> Type | None:
        """Make a type that of a batch of values of another; either may be known first. Return the
        hole where neither is. Raises NoBatch and Clash."""
        assert self.size is not None
        found = solver.resolve(ty)
        if not isinstance(found, TypeHole):
            solver.unify(whole, with_batch(found, axes, self.size, self.adts))
            return None
        known = solver.resolve(whole)
        if isinstance(known, TypeHole):
            return found
        solver.unify(ty, without_batch(known, axes))
        solver.unify(whole, with_batch(solver.resolve(ty), axes, self.size, self.adts))
        return None

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        function = solver.resolve(self.function)
        if not isinstance(function, FnType):
            return NotAFunction(self.transform.function.span, show(function))
        help_ = clash.help if isinstance(clash, Clash) else None
        return TransformMismatch(self.span, self.transform.rule.value, str(clash), help_)
