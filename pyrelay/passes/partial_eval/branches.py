"""Branches of the residual program while their arms are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, final

from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.expr import Expr
from .residual import Facts
from .values import Value

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ...ir.types import Type


@final
@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a residual body that is no atom: a call or a branch in tail position."""

    expr: Expr


Result: TypeAlias = "Value | Tail"


@final
@dataclass(frozen=True, slots=True)
class Arm:
    """An arm that has been evaluated: its code, its result, and what is known at its end."""

    code: BlockBuilder
    result: Result
    facts: Facts

    @property
    def value(self) -> Value:
        """The result of an arm that is not in tail position."""
        assert not isinstance(self.result, Tail)
        return self.result


@final
@dataclass(frozen=True, slots=True)
class Branches:
    """A branch on an unknown value: its arms, and what makes a node of bodies and their type."""

    arms: tuple[Arm, ...]
    make: Callable[[Sequence[Expr], Type], Expr]
    ty: Type
    span: Span
