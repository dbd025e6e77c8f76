"""Steps of optimisers that move some rows of a table, in the storage of the table.

The gradient of a table of embeddings is zero but for the rows that were looked up, and a step
`by_rows` leaves the other rows of the parameter, and of its moments, as they are. Where nothing
aliases the old contents of the cell, the step is taken on the rows alone, and the write of the cell
puts them into the tables that are there (`write_rows`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, final

from ...analysis.aliasing import RefAliasing
from ...dataclass import dataclass
from ...ir.expr import Binding, Call, Expr, RefWrite, TupleGet, Var
from ...ir.op import Op
from ...ir.types import UNIT
from ...operators.builder import Builder, Value
from ...operators.composite.descent import summed_rows, write_rows
from ...operators.composite.optim import adam_step, momentum_step
from ...operators.primitive.gathering import index_select
from .cell_contents import Contents, Path
from .low_rank_gradients import factors_of, is_float_tensor
from .table_rows import flat_rows

_TABLES: Final[Mapping[Op, tuple[int, ...]]] = {momentum_step: (0, 3), adam_step: (0, 2, 3)}
"""The operands of a step that its results replace, in their order."""


@final
@dataclass(frozen=True, slots=True)
class _TableStep:
    """A step on a table and its moments: the operator with its operands, and the rows, with their
    numbers, that are its gradient."""

    op: Op
    call: Call
    factors: tuple[Var, Var]

    @property
    def places(self) -> list[int]:
        """The operands that are the tables: a step of plain descent has no velocity."""
        return [p for p in _TABLES[self.op] if isinstance(self.call.args[p], Var)]

    @property
    def tables(self) -> list[Expr]:
        """The parameter and its moments."""
        return [self.call.args[p] for p in self.places]

    def moved(self, builder: Builder) -> Iterator[Value]:
        """Return each table with the numbers of the rows that move, and these rows."""
        rows, numbers = map(builder.value, self.factors)
        rows, numbers = flat_rows(rows, numbers, rows.rank - numbers.rank)
        args = [builder.value(a) for a in self.call.args]
        args[1] = builder.call(summed_rows, (rows, numbers))
        tables = [args[p] for p in self.places]
        for place in self.places:
            args[place] = index_select(args[place], numbers, dim=0)
        found = builder.call(self.op, args, self.call.attrs)
        for place, table in enumerate(tables):
            yield builder.tuple((table, numbers, found[place]))


@final
@dataclass(frozen=True, slots=True)
class RowUpdate:
    """A write of which some steps move rows alone: each of their results, in `replaced`, gives way
    to the table that is there. `others` are the new values beside; `spare` are the variables that
    are needed no more."""

    contents: Contents
    steps: tuple[_TableStep, ...]
    replaced: Mapping[Expr, Expr]
    others: tuple[Expr, ...]
    spare: frozenset[Expr]

    def take_part(self, aliasing: RefAliasing) -> None:
        """Note what the write reads when it is made, and lose what must not be among the new
        values."""
        write = self.contents.write
        for other in self.others:
            aliasing.lost.update(aliasing.by(other))
        for table in self.replaced.values():
            assert isinstance(table, Var)
            aliasing.use_at(table, aliasing.place[write])

    def settled(self, _: RefAliasing) -> RowUpdate:
        """Return the update: the rows are computed before anything is written."""
        return self

    def bindings(self, var: Var) -> list[Binding]:
        """Return the bindings that take the place of the write's."""
        write = self.contents.write
        builder = Builder(write.span)
        tables = builder.tuple([part for step in self.steps for part in step.moved(builder)])
        content = self._rebuilt(builder, write.value)
        operands = (write.ref, content.atom, tables.atom)
        call = Call(write_rows, operands, {}, ty=UNIT, span=write.span)
        return [*builder.bindings, Binding(var, call)]

    def _rebuilt(self, builder: Builder, atom: Expr) -> Value:
        """Return a part of the contents with the tables that are there. Models nest as deep as
        written."""
        fields = self.contents.fields(atom)
        if fields is None or atom not in self.spare:
            return builder.value(self.replaced.get(atom, atom))
        return builder.tuple([self._rebuilt(builder, f) for f in fields])


def row_update(
    write: RefWrite, defined: Mapping[Expr, Expr], uses: Counter[Expr]
) -> RowUpdate | None:
    """Return a write as an update of rows; None if no step of it is one."""
    contents = Contents(write, defined, uses)
    spare, others = set[Expr](), list[Expr]()
    made: dict[Expr, dict[int, tuple[Expr, Path]]] = {}
    for atom, path in contents.parts():
        value = defined.get(atom)
        if contents.stays(atom, path):
            continue
        if contents.fields(atom) is not None:
            spare.add(atom)
        elif isinstance(value, TupleGet) and uses[atom] == 1:
            made.setdefault(value.value, {})[value.index] = atom, path
        else:
            others.append(atom)
    steps: list[_TableStep] = []
    replaced: dict[Expr, Expr] = {}
    for stepped, results in made.items():
        step = _row_step(defined.get(stepped), contents)
        if step is None or uses[stepped] != len(results) or not _stay(step, results, contents):
            others += (atom for atom, _ in results.values())
            continue
        steps.append(step)
        spare |= {stepped, step.call.args[1]}
        replaced |= {results[i][0]: table for i, table in enumerate(step.tables)}
    if not steps:
        return None
    return RowUpdate(
        contents, tuple(steps), replaced, tuple(others), frozenset(spare | {*replaced})
    )


def _row_step(value: Expr | None, contents: Contents) -> _TableStep | None:
    match value:
        case Call(Op() as op, (_, Var() as grad, *_), attrs) if op in _TABLES and attrs["by_rows"]:
            factors = factors_of(grad, contents.defined, contents.uses)
            has_rows = factors is not None and not is_float_tensor(factors[1])
            return _TableStep(op, value, factors) if factors is not None and has_rows else None
        case _:
            return None


def _stay(step: _TableStep, results: Mapping[int, tuple[Expr, Path]], contents: Contents) -> bool:
    """Return whether the results of a step replace just the tables that it read from the cell."""
    if sorted(results) != list(range(len(step.tables))):
        return False
    return all(contents.stays(t, results[i][1]) for i, t in enumerate(step.tables))
