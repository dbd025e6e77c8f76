"""Conditions: each is one Bool; a value of another type probably stands for a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..dataclass import dataclass
from ..diagnostics.catalogue.types import ConditionMismatch
from ..diagnostics.diagnostic import Problem
from ..ir.expr import Constant, Expr, If, use_of
from ..ir.op import Clash
from ..ir.types import (
    BOOL,
    AdtType,
    FnType,
    SizeType,
    StrType,
    TensorType,
    Type,
    bool_,
    show,
)
from ..prelude.library import element_of, inner_of
from .explanations.explain import operand_text
from .solver import Solver

if TYPE_CHECKING:
    from ..diagnostics.source import Span


@final
@dataclass(slots=True)
class ConditionConstraint:
    """A condition is one Bool."""

    type: Type
    span: Span
    text: str
    """The condition, as it is written."""
    otherwise: str | None
    """The second operand of an `or` whose first one the condition is, as it is written."""

    @staticmethod
    def of(expr: If, ty: Type) -> ConditionConstraint:
        """Return the constraint of a branch."""
        is_or = isinstance(expr.then, Constant) and expr.then.span == expr.span
        span = use_of(expr.condition, expr.span) or expr.span
        otherwise = operand_text(expr.otherwise) if is_or else None
        return ConditionConstraint(ty, span, operand_text(expr.condition), otherwise)

    @staticmethod
    def of_guard(guard: Expr, ty: Type) -> ConditionConstraint:
        """Return the constraint of the guard of a case."""
        return ConditionConstraint(ty, guard.span, operand_text(guard), None)

    def attempt(self, solver: Solver) -> None:
        """Make it hold. Raises Stuck or Clash."""
        ty = solver.awaited(self.type)
        if isinstance(ty, SizeType):
            raise Clash("a number is no condition")
        solver.unify(ty, BOOL)

    def explain(self, solver: Solver, clash: Exception) -> Problem:
        """Return the diagnostic for the user."""
        ty = solver.resolve(self.type)
        is_optional = inner_of(ty) is not None
        return ConditionMismatch(self.span, show(ty), self._comparison(ty), is_optional)

    def _comparison(self, ty: Type) -> str:
        """Return a help with the condition that a value of another type probably stands for."""
        x = self.text
        if self.otherwise is None:
            return _comparison(ty, x)
        if inner_of(ty) is not None:
            return f"write `{self.otherwise} if {x} is None else {x}`"
        return f"write `{x} if {x} else {self.otherwise}`" if _has_truth(ty) else _comparison(ty, x)


def _has_truth(ty: Type) -> bool:
    """Return whether a value of a type can be a condition by itself."""
    is_number = isinstance(ty, TensorType) and ty.rank == 0
    return is_number or isinstance(ty, StrType) or element_of(ty) is not None


def _comparison(ty: Type, x: str) -> str:
    match ty:
        case TensorType(dtype=dtype) if ty.rank > 0 and dtype == bool_:
            return (
                "reduce it with `.any()` or `.all()`; element by element, write "
                "relay.where(condition, a, b), relay.logical_and(a, b) or relay.logical_or(a, b)"
            )
        case TensorType() if ty.rank > 0:
            return f"reduce a comparison, such as `({x} != 0).any()`"
        case AdtType() if element_of(ty) is not None:
            return f"whether a list has elements is `len({x}) > 0`"
        case AdtType() if inner_of(ty) is not None:
            return f"write the comparison: `{x} is not None`"
        case StrType():
            return f'write the comparison: `{x} != ""`'
        case FnType():
            return f"call it: `{x}(...)`"
        case AdtType():
            return f"compare a field of it, or ask for its class: `isinstance({x}, ...)`"
        case _:
            return f"write the comparison, such as `{x} != 0`"
