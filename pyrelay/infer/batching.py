"""The type of a function that is mapped over a batch: parameters and result with a dim more."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, final

from ..dataclass import dataclass
from ..ir.derived_types.batch_dims import NoBatch, axes_of, is_batched, with_batch, without_batch
from ..ir.derived_types.own_tensors import own_tensors
from ..ir.dims import Dim
from ..ir.expr import Batching, Options, Transform
from ..ir.op import Clash, Stuck
from ..ir.types import (
    AdtType,
    FnType,
    TupleType,
    Type,
    TypeHole,
    batch_name,
    element_name,
    show,
    subtypes,
)
from .transforms import explain_transform

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
        function = solver.resolve(solver.known(self.function))
        if not isinstance(function, FnType):
            raise Clash("only functions are mapped over a batch")
        assert isinstance(self.options, Batching)
        axes = self._axes(len(function.params), self.options)
        if self.made is None:
            self.size = solver.fresh_dim_hole()
            self.made = FnType(tuple(solver.fresh() for _ in function.params), solver.fresh())
            solver.unify(self.result, self.made)
        try:
            each = zip(function.params, self.made.params, axes, strict=True)
            stuck = [hole for parts in each for hole in self._batch(solver, *parts)]
            rows = [solver.resolve(ty) for ty in function.params]
            if not stuck and not any(map(is_batched, rows, axes)):
                raise Clash(
                    "nothing is batched: no parameter has an axis",
                    help="give an axis to one at least: in_axes=0",
                )
            out_axes = self.options.out_axes
            stuck += self._batch(solver, function.result, self.made.result, out_axes)
        except NoBatch as error:
            raise Clash(str(error), help=error.help) from None
        if stuck:
            raise Stuck(*stuck)

    def _axes(self, count: int, options: Batching) -> tuple[Axes, ...]:
        captures = self.transform.captures
        try:
            return (*(None,) * captures, *options.axes(count - captures))
        except ValueError as error:
            raise Clash(str(error), help="write one axis for all, or one for each") from None

    def _batch(self, solver: Solver, ty: Type, whole: Type, axes: Axes) -> tuple[Type, ...]:
        """Make a type that of a batch of values of another; either may be known first, whole or in
        parts. Return the holes where neither is. Raises NoBatch and Clash."""
        assert self.size is not None
        if axes is None:
            solver.unify(whole, ty)
            return ()
        found, known = solver.resolve(ty), solver.resolve(whole)
        if not _is_open(found):
            self._unify_batch(solver, whole, found, axes)
            return ()
        if not _is_open(known):
            solver.unify(ty, without_batch(known, axes))
            self._unify_batch(solver, whole, solver.resolve(ty), axes)
            return ()
        if isinstance(found, TypeHole) and isinstance(known, TypeHole):
            return found, known
        # Each side is given its form once: new holes at every attempt would wake others for ever.
        if isinstance(found, TypeHole):
            found = _again(known, solver)
            element = element_name(known.name) if isinstance(known, AdtType) else None
            if element is not None:
                assert isinstance(found, AdtType)
                found = AdtType(element, found.args[:-1])
            solver.unify(ty, found)
        elif isinstance(known, TypeHole):
            known = _again(found, solver)
            if isinstance(known, AdtType) and own_tensors(self.adts, known.name):
                known = AdtType(batch_name(known.name), (*known.args, self.size))
                self._mention(solver, known)
            solver.unify(whole, known)
        if type(found) is not type(known) or len(_inside(found)) != len(_inside(known)):
            raise Clash(f"{show(known)} is no batch of {show(found)}")
        each = zip(_inside(found), _inside(known), _axes_inside(found, axes), strict=True)
        return tuple(hole for parts in each for hole in self._batch(solver, *parts))

    def _unify_batch(self, solver: Solver, whole: Type, element: Type, axes: Axes) -> None:
        assert self.size is not None
        batch = with_batch(element, axes, self.size, self.adts)
        self._mention(solver, batch)
        solver.unify(whole, batch)

    def _mention(self, solver: Solver, batch: Type) -> None:
        """Let the program have the data types of batches that a type mentions."""
        for part in subtypes(batch):
            if isinstance(part, AdtType) and element_name(part.name) is not None:
                assert solver.mention is not None
                solver.mention(part.name)

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        return explain_transform(self.transform, solver.resolve(self.function), clash)


def _inside(ty: Type) -> tuple[Type, ...]:
    """Return the parts of a type that have the batch dim in its place."""
    match ty:
        case TupleType(fields):
            return fields
        case AdtType(_, args):
            return tuple(a for a in args if not isinstance(a, Dim))
        case _:
            return ()


def _axes_inside(ty: Type, axes: Axes) -> tuple[Axes, ...]:
    """Return the axes of these parts."""
    return axes_of(ty, axes) if isinstance(ty, TupleType) else (0,) * len(_inside(ty))


def _again(ty: Type, solver: Solver) -> Type:
    """Return a type with new holes in the place of these parts."""
    match ty:
        case TupleType(fields):
            return TupleType(tuple(solver.fresh() for _ in fields))
        case AdtType(name, args):
            return AdtType(name, tuple(a if isinstance(a, Dim) else solver.fresh() for a in args))
        case _:
            return ty


def _is_open(ty: Type) -> bool:
    """Return whether a hole stands where a type has a batch dim."""
    return isinstance(ty, TypeHole) or any(map(_is_open, _inside(ty)))
