"""Steps of random programs that work on cells.

Cells are made, read, written, logged to, held in tuples, data and other cells, and captured or
taken by functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from pyrelay.diagnostics.source import NOWHERE as SPAN
from pyrelay.ir.dims import Dim, DimVar
from pyrelay.ir.expr import (
    BindPattern,
    Clause,
    ConstructorPattern,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Var,
)
from pyrelay.ir.module import AdtDef, ConstructorDef
from pyrelay.ir.types import INT, UNIT, AdtType, DType, RefType, TensorType, Type, int64
from pyrelay.operators.builder import Builder, Value
from pyrelay.operators.table import BY_NAME


class Scope(Protocol):
    """A body under construction."""

    builder: Builder
    values: list[Value]


class Maker(Protocol):
    """What draws a program."""

    def choose(self, options: Sequence[Any]) -> Any:
        """Draw one of several."""
        ...

    def number(self, low: int, high: int) -> int:
        """Draw a number."""
        ...

    def floats(self, scope: Any) -> list[Value]:
        """Return the float tensors that are visible."""
        ...

    def of_type(self, scope: Any, ty: Type) -> list[Value]:
        """Return what is visible and has a type."""
        ...

    def closure_of(self, scope: Any, taken: Type, given: Type) -> Value:
        """Draw a local function."""
        ...


class CellSteps:
    """The steps, for one program."""

    def __init__(self, maker: Maker, dtype: DType, adts: dict[str, AdtDef]) -> None:
        self._maker: Final = maker
        self._dtype: Final = dtype
        self._adts: Final = adts
        self.all: Final[list[Callable[[Any], Value | None]]] = [
            self._make,
            self._read,
            self._write,
            self._write,
            self._log,
            self._pair,
            self._nest,
            self._hold,
            self._function,
        ]

    def start(self, scope: Scope) -> None:
        """Make the log, a cell that remembers in which order effects have happened."""
        scope.values.append(_made(scope, scope.builder.constant(1, int64)))
        scope.values.append(_made(scope, self._maker.floats(scope)[0]))

    def ends(self, scope: Scope) -> list[Value]:
        """Return the contents of all cells with tensors in them."""
        cells = [v for v in scope.values if isinstance(v.ty, RefType)]
        return [_read(scope, c) for c in cells if isinstance(c.ty.value, TensorType)]

    def _cells(self, scope: Scope) -> list[Value]:
        return [v for v in scope.values if isinstance(v.ty, RefType)]

    def _float_cells(self, scope: Scope) -> list[Value]:
        return [v for v in self._cells(scope) if v.ty.value != INT]

    def _make(self, scope: Scope) -> Value:
        return _made(scope, self._maker.choose(self._maker.floats(scope)))

    def _read(self, scope: Scope) -> Value | None:
        cells = self._float_cells(scope)
        return _read(scope, self._maker.choose(cells)) if cells else None

    def _write(self, scope: Scope) -> None:
        cells = self._float_cells(scope)
        if cells:
            cell = self._maker.choose(cells)
            new = self._maker.choose(self._maker.of_type(scope, cell.ty.value)[::-1] or [None])
            _write(scope, cell, _read(scope, cell) if new is None else new)

    def _log(self, scope: Scope) -> None:
        (log, *_) = (v for v in self._cells(scope) if v.ty.value == INT)
        digit = self._maker.number(1, 9)
        _write(scope, log, BY_NAME["mod"](_read(scope, log) * 31 + digit, 10007))

    def _pair(self, scope: Scope) -> Value:
        cell = self._maker.choose(self._cells(scope))
        return scope.builder.tuple([cell, self._maker.choose(self._maker.floats(scope))])

    def _nest(self, scope: Scope) -> Value:
        cells = [v for v in self._float_cells(scope) if isinstance(v.ty.value, TensorType)]
        return _made(scope, self._maker.choose(cells)) if cells else self._make(scope)

    def _hold(self, scope: Scope) -> Value | None:
        """Put a cell of vectors into data, and take it out again."""
        vectors = [v for v in self._cells(scope) if isinstance(v.ty.value, TensorType)]
        vectors = [v for v in vectors if v.ty.value.rank == 1 and v.ty.value != INT]
        vectors = [v for v in vectors if v.ty.value.shape[0].name is not None]
        if not vectors:
            return None
        cell = self._maker.choose(vectors)
        inside = RefType(TensorType((Dim.of("L"),), self._dtype))
        constructor = ConstructorDef("Held", (inside, INT))
        self._adts["Holder"] = AdtDef("Holder", (DimVar("L"),), (constructor,), SPAN)
        ty = AdtType("Holder", cell.ty.value.shape)
        held = scope.builder.construct(
            "Holder", "Held", (cell, scope.builder.constant(1, int64)), ty
        )
        out, count = Var("out", cell.ty, span=SPAN), Var("count", INT, span=SPAN)
        fields = (BindPattern(out, span=SPAN), BindPattern(count, span=SPAN))
        clause = Clause(ConstructorPattern("Holder", "Held", fields, span=SPAN), out)
        return scope.builder.bind(Match(held.atom, (clause,), ty=cell.ty, span=SPAN), "out")

    def _function(self, scope: Scope) -> Value:
        """Make a function that takes a cell."""
        cell = self._maker.choose(self._cells(scope))
        return self._maker.closure_of(
            scope, cell.ty, self._maker.choose(self._maker.floats(scope)).ty
        )


def _made(scope: Scope, content: Value) -> Value:
    cell = RefCreate(content.atom, RefType(content.ty), span=SPAN)
    return scope.builder.bind(cell, "cell")


def _read(scope: Scope, cell: Value) -> Value:
    return scope.builder.bind(RefRead(cell.atom, cell.ty.value, span=SPAN), "read")


def _write(scope: Scope, cell: Value, content: Value) -> None:
    scope.builder.bind(RefWrite(cell.atom, content.atom, UNIT, span=SPAN), "done")
