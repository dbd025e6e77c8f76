"""Steps of random programs that the world notices: they print, and they stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pyrelay.ir.types import BOOL, INT
from pyrelay.operators.builder import Value
from pyrelay.operators.table import BY_NAME
from tests.cell_steps import Maker, Scope


class OutputSteps:
    """Draws prints and assertions; most assertions hold."""

    def __init__(self, maker: Maker) -> None:
        self._maker: Final = maker
        self._count = 0
        self.all: Final[list[Callable[[Any], Value | None]]] = [
            self._print,
            self._print,
            self._check,
            self._divide,
        ]

    def _print(self, scope: Scope) -> None:
        """Print a number that no other step prints, with an integer."""
        self._count += 1
        shown = [scope.builder.constant(self._count, INT.dtype), self._integer(scope)]
        BY_NAME["print"](scope.builder.tuple(shown))

    def _check(self, scope: Scope) -> None:
        self._count += 1
        condition = BY_NAME["less"](self._integer(scope), self._maker.number(1, 6))
        if self._maker.number(0, 3) == 0:
            condition = self._maker.choose(self._maker.of_type(scope, BOOL))
        BY_NAME["check"](condition, message=f"step {self._count}")

    def _divide(self, scope: Scope) -> Value:
        """Divide by an integer that may be 0, and print the quotient: what nobody needs may go."""
        found = BY_NAME["floor_divide"](self._integer(scope), self._integer(scope))
        BY_NAME["print"](scope.builder.tuple([found]))
        return found

    def _integer(self, scope: Scope) -> Value:
        return self._maker.choose(self._maker.of_type(scope, INT))
