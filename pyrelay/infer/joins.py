"""The type of a value that comes from one of several places: the arms of an `if` or a `match`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from ..diagnostics.source import Construct, Span
from ..ir.dims import Dim
from ..ir.expr import Call, Expr, Function, If, Var, use_of
from ..ir.own_sizes import has_own_sizes
from ..ir.traverse import spine
from ..ir.types import AdtType, FnType, RefType, SizeType, TensorType, TupleType, Type, TypeHole
from ..prelude.library import OPTION, inner_of
from .coercions.optional import joined_optional
from .solver import Solver


def join(solver: Solver, left: Type, right: Type) -> Type:
    """Return the type of a value that is of one of two types. Raises Clash.

    They are equal, up to numbers: sizes that differ become an integer. Where dims differ that only
    the running program knows, the value has dims of its own.
    """
    return _Join(solver).types(left, right)


def takes_none(solver: Solver, ty: Type) -> bool:
    """Return whether other values become values of a type where they flow into it: None, tensors
    with sizes of their own, and tuples with these."""
    ty = solver.shallow(ty)
    if isinstance(ty, TupleType):
        return any(takes_none(solver, part) for part in ty.fields)
    return inner_of(ty) is not None or has_own_sizes(ty)


@final
class _Join:
    """One join: two dims that differ become one and the same new dim everywhere."""

    def __init__(self, solver: Solver) -> None:
        self._solver: Final = solver
        self._new: Final[dict[tuple[Dim, Dim], Dim]] = {}

    def types(self, left: Type, right: Type) -> Type:
        """Return the join of two types. They nest as deep as a user writes, so this recurses."""
        solver = self._solver
        left, right = solver.shallow(left), solver.shallow(right)
        optional = joined_optional(left, right)
        if optional is not None:
            if solver.mention is not None:
                solver.mention(OPTION)
            solver.flow(left, optional)
            solver.flow(right, optional)
            return optional
        for one, other in ((left, right), (right, left)):
            if has_own_sizes(one) and isinstance(other, TensorType):
                solver.flow(other, one)
                return one
        match left, right:
            case SizeType(a), SizeType(b):
                return (
                    left if solver.resolve_dim(a) == solver.resolve_dim(b) else solver.widen(left)
                )
            case ((SizeType() | TensorType(())), (SizeType() | TensorType(()))):
                number = solver.widen(left)
                solver.unify(number, solver.widen(right))
                return number
            case (SizeType() as known, TypeHole() as hole) | (
                TypeHole() as hole,
                SizeType() as known,
            ):
                # What the other place gives may be another number.
                number = solver.widen(known)
                solver.unify(hole, number)
                return number
            case TupleType(a), TupleType(b) if len(a) == len(b):
                return TupleType(tuple(map(self.types, a, b)))
            case _:
                return self._same(left, right)

    def _same(self, left: Type, right: Type) -> Type:
        """Return the join of two types that differ at most in dims."""
        left, right = self._solver.shallow(left), self._solver.shallow(right)
        match left, right:
            case TensorType(a, p, m), TensorType(b, q, n) if len(a) == len(b) and m is n:
                self._solver.unify_dtypes(p, q)
                return TensorType(tuple(map(self._dim, a, b)), p, m)
            case TupleType(a), TupleType(b) if len(a) == len(b):
                return TupleType(tuple(map(self._same, a, b)))
            case FnType(a, r), FnType(b, s) if len(a) == len(b):
                return FnType(tuple(map(self._same, a, b)), self._same(r, s))
            case RefType(a), RefType(b):
                return RefType(self._same(a, b))
            case AdtType(name, a), AdtType(other, b) if name == other and len(a) == len(b):
                return AdtType(name, tuple(map(self._arg, a, b)))
            case _:
                self._solver.unify(left, right)
                # What an unknown type is found to be may be wider than what it meets.
                return right if isinstance(right, TypeHole) else left

    def _arg(self, left: Type | Dim, right: Type | Dim) -> Type | Dim:
        if isinstance(left, Dim):
            assert isinstance(right, Dim)
            return self._dim(left, right)
        assert not isinstance(right, Dim)
        return self._same(left, right)

    def _dim(self, left: Dim, right: Dim) -> Dim:
        left, right = self._solver.resolve_dim(left), self._solver.resolve_dim(right)
        difference = left - right
        if difference.has_holes() or not self._solver.is_found_running(difference):
            self._solver.unify_dims(left, right)
            return left
        if (left, right) not in self._new:
            self._new[left, right] = self._solver.fresh_dim("size")
        return self._new[left, right]


def arrival(tail: Expr, at: Span, functions: Mapping[Var | str, Function]) -> Span:
    """Return where what an arm of a node at a span gives is written: of an arm that goes on with a
    loop, where the loop has ended. `functions` are the local ones by name."""
    callee = tail.callee if isinstance(tail, Call) else None
    if isinstance(callee, Var) and callee.span.construct is Construct.LOOP and callee in functions:
        end = spine(functions[callee].body)[1]
        if isinstance(end, If):
            tail, at = spine(end.otherwise)[1], end.span
    return use_of(tail, at, is_result=True) or tail.span
