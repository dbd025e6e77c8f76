"""What a random program may mention at one place."""

from __future__ import annotations

from collections.abc import Iterable

from pyrelay.diagnostics.source import NOWHERE as SPAN
from pyrelay.ir.expr import Binding, Expr, Flavour, LetBlock
from pyrelay.ir.names import Names
from pyrelay.operators.builder import Builder, Value


class Scope:
    """A body under construction: what is visible in it, and what it has bound so far."""

    def __init__(self, names: Names, values: Iterable[Value], depth: int) -> None:
        self.builder = Builder(SPAN, names)
        self.values = [self.builder.value(v.atom) for v in values]
        self.depth = depth
        self._blocks: list[tuple[Flavour, tuple[Binding, ...]]] = []

    def add_block(self, flavour: Flavour, *bindings: Binding) -> None:
        """Add a block of its own."""
        self._flush()
        self._blocks.append((flavour, bindings))

    def close(self, result: Value | Expr) -> Expr:
        """Return the finished body; it may end in a call or a branch, in tail position."""
        self._flush()
        expr = result.atom if isinstance(result, Value) else result
        for flavour, bindings in reversed(self._blocks):
            expr = LetBlock(bindings, expr, flavour, expr.ty, span=SPAN)
        return expr

    def _flush(self) -> None:
        if self.builder.bindings:
            self._blocks.append((Flavour.PURE, tuple(self.builder.bindings)))
            self.builder.bindings.clear()


"""Adds to a scope; gives the value that became visible, or None where nothing fits."""
