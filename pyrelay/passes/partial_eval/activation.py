"""One evaluation of a function: its variables, and the types in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final, final

from ...analysis.callee import Callee
from ...analysis.matching import Matching
from ...analysis.retype import Retyping
from ...ir.dims import Dim
from ...ir.expr import Constant, Expr, Var, type_of
from ...ir.types import SizeType, Substitution, TupleType, Type
from .values import Known, Made, Value


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

    def doubt(self, given: Collection[str]) -> None:
        """Let sizes that a call passes, and that the sizes `given` do not show, be those of values:
        the caller may mention a size that nothing shows there, since no value of it is asked for.
        """
        dims = self._change.dims.items()
        self._own_sizes.update(n for n, dim in dims if not dim.names() <= frozenset(given))

    def learn_from(self, bound: Iterable[tuple[Var, Value]]) -> None:
        """Let the sizes that parameters or a pattern find in values be those of the values. Fields
        of a tuple have types of their own: that of the tuple may name sizes that nothing shows."""
        met = Matching()
        pending = [(type_of(var), value) for var, value in bound][::-1] if self._own_sizes else []
        while pending:
            ty, value = pending.pop()
            match ty, value:
                case TupleType(parts), Made(constructor=None, fields=fields):
                    pending += reversed(list(zip(parts, fields, strict=True)))
                case SizeType(), Known(Constant(int() as number)):
                    met.match(ty, SizeType(Dim.of(number)))
                case _, Known():
                    pass
                case _ if value.atom.ty is not None:
                    met.match(ty, value.atom.ty)
                case _:
                    pass
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
