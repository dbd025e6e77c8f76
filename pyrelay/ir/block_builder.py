"""Bodies in A-normal form under construction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from .expr import Binding, Expr, Flavour, LetBlock, Var


@final
class BlockBuilder:
    """The bindings of one body, collected in order; a run of one flavour is a block."""

    def __init__(self) -> None:
        self.flavour = Flavour.PURE
        """The flavour of the bindings that follow."""
        self._blocks: Final[list[tuple[Flavour, list[Binding]]]] = []

    def bind(self, var: Var, value: Expr) -> Var:
        """Add a binding after all others; return its variable."""
        if not self._blocks or self._blocks[-1][0] is not self.flavour:
            self._blocks.append((self.flavour, []))
        self._blocks[-1][1].append(Binding(var, value))
        return var

    def bind_rec(self, bindings: Sequence[Binding]) -> None:
        """Add a block of functions that are in each other's scope."""
        self._blocks.append((Flavour.REC, list(bindings)))

    def retract(self, var: Var) -> None:
        """Remove the last binding if it is that of a variable."""
        if self._blocks and self._blocks[-1][1][-1].var is var:
            self._blocks[-1][1].pop()
            if not self._blocks[-1][1]:
                self._blocks.pop()

    def extend(self, other: BlockBuilder) -> None:
        """Add the bindings of another body after all others."""
        self._blocks.extend(other._blocks)

    def close(self, result: Expr) -> Expr:
        """Return all bindings over the expression that ends the body."""
        for flavour, bindings in reversed(self._blocks):
            span = bindings[0].value.span
            result = LetBlock(tuple(bindings), result, flavour, ty=result.ty, span=span)
        return result
