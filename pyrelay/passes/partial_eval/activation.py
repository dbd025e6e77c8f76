"""One evaluation of a function: its variables, and the types in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, final

from ...analysis.callee import Callee
from ...analysis.matching import Matching
from ...analysis.retype import Retyping
from ...ir.expr import Expr, Var, type_of
from ...ir.types import Substitution, Type
from .values import Value


@final
class Activation:
    """One evaluation of a function: the values of its variables, and the types in it."""

    def __init__(
        self,
        name: str,
        callee: Callee,
        change: Substitution,
        args: Sequence[Value],
        caller: Activation | None,
        because: str,
    ) -> None:
        """`change` brings the types of the function into the terms of the residual function;
        `because` says why its code is there."""
        self.name: Final = name
        self.args: Final = tuple(args)
        self.caller: Final = caller
        self.values: Final[dict[Expr, Value]] = {}
        self.types = Retyping(change, because)
        self.level = 0
        """The unknown branches around where it began."""
        self._change: Final = change
        self._because: Final = because
        self._own_sizes: Final = set(callee.own_sizes)
        """The sizes that it may still find, of a value that is known."""

    def learn(self, ty: Type, actual: Type) -> None:
        """Let the sizes that a pattern finds in a value be those of the value."""
        met = Matching()
        met.match(ty, actual)
        found = {n: d for n, d in met.dims.items() if n in self._own_sizes}
        if found:
            self._own_sizes.difference_update(found)
            self._change.dims.update(found)
            self.types = Retyping(self._change, self._because)

    def fresh(self, var: Var) -> Var:
        """Return a new variable of the residual program for one of the function."""
        return replace(var, ty=self.types.type(var.ty))

    def type(self, expr: Expr) -> Type:
        """Return the type that an expression has in this evaluation."""
        ty = self.types.type(type_of(expr))
        assert ty is not None
        return ty
