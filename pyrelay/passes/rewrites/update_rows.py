"""Steps of optimisers that move some rows of a table, in the storage of the table.

The gradient of a table of embeddings is zero but for the rows that were looked up. Plain descent
(where its rate is a constant, `in_place` makes it of all parameters at once) and a step `by_rows`
leave the other rows of the parameter, and of its moments, as they are. Where nothing
aliases the old contents of the cell, the step is taken on the rows alone, and these are stored in
the tables that are there; all else that the step computes is stored over what it replaces
(`overwrite_all`), so that the cell keeps its contents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, final

from ...analysis.aliasing import RefAliasing
from ...dataclass import dataclass
from ...ir.expr import Binding, Call, Expr, RefRead, RefWrite, TupleGet, Var, type_of
from ...ir.op import Op
from ...ir.types import UNIT, TensorType
from ...operators.builder import Builder, Value
from ...operators.composite.descent import overwrite_all
from ...operators.composite.optim import adam_step, momentum_step, sgd_step
from ...operators.composite.table_rows import flat_rows, summed_rows
from ...operators.primitive.gathering import index_select
from .cell_contents import Contents, Path
from .low_rank_gradients import factors_of, is_float_tensor

_TABLES: Final[Mapping[Op, tuple[int, ...]]] = {
    sgd_step: (0,),
    momentum_step: (0, 3),
    adam_step: (0, 2, 3),
}
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

    def moved(self, builder: Builder) -> Iterator[tuple[Value, Value]]:
        """Return each table, and the rows that move with their numbers."""
        rows, numbers = map(builder.value, self.factors)
        rows, numbers = flat_rows(rows, numbers, rows.rank - numbers.rank)
        args = [builder.value(a) for a in self.call.args]
        args[1] = builder.call(summed_rows, (rows, numbers))
        tables = [args[p] for p in self.places]
        for place in self.places:
            args[place] = index_select(args[place], numbers, dim=0)
        found = builder.call(self.op, args, self.call.attrs)
        is_one = isinstance(found.ty, TensorType)
        for place, table in enumerate(tables):
            yield table, builder.tuple((found if is_one else found[place], numbers))


@final
@dataclass(frozen=True, slots=True)
class RowUpdate:
    """A write of which some steps move rows alone. `others` are the new values beside, each with
    the path to what it replaces; `spare` are the variables that are needed no more."""

    write: RefWrite
    steps: tuple[_TableStep, ...]
    others: tuple[tuple[Expr, Path], ...]
    spare: frozenset[Expr]

    def take_part(self, aliasing: RefAliasing) -> None:
        """Note what the write reads when it is made, and lose what must not be among the new
        values."""
        for other, _ in self.others:
            aliasing.lost.update(aliasing.by(other))
        for table in (t for step in self.steps for t in step.tables):
            assert isinstance(table, Var)
            aliasing.use_at(table, aliasing.place[self.write])

    def settled(self, _: RefAliasing) -> RowUpdate:
        """Return the update: the rows are computed before anything is written."""
        return self

    def bindings(self, var: Var) -> list[Binding]:
        """Return the bindings that take the place of the write's."""
        write = self.write
        builder = Builder(write.span)
        pairs = [pair for step in self.steps for pair in step.moved(builder)]
        read = RefRead(write.ref, ty=type_of(write.value), span=write.span)
        content = builder.bind(read, "content")
        pairs += ((content.at(path), builder.value(other)) for other, path in self.others)
        targets, values = map(builder.tuple, zip(*pairs, strict=True))
        call = Call(overwrite_all, (targets.atom, values.atom), {}, ty=UNIT, span=write.span)
        return [*builder.bindings, Binding(var, call)]


def row_update(
    write: RefWrite, defined: Mapping[Expr, Expr], uses: Counter[Expr]
) -> RowUpdate | None:
    """Return a write as an update of rows; None if no step of it is one."""
    contents = Contents(write, defined, uses)
    spare, others = set[Expr](), list[tuple[Expr, Path]]()
    made: dict[Expr, dict[int, tuple[Expr, Path]]] = {}
    for atom, path in contents.parts():
        value = defined.get(atom)
        if contents.stays(atom, path) or type_of(atom) == UNIT:
            continue
        if contents.fields(atom) is not None:
            spare.add(atom)
        elif isinstance(value, TupleGet) and uses[atom] == 1:
            made.setdefault(value.value, {})[value.index] = atom, path
        elif isinstance(value, Call) and value.callee is sgd_step and uses[atom] == 1:
            made.setdefault(atom, {})[0] = atom, path
        else:
            others.append((atom, path))
    steps: list[_TableStep] = []
    for stepped, results in made.items():
        step = _row_step(defined.get(stepped), contents)
        if step is None or uses[stepped] != len(results) or not _stay(step, results, contents):
            others += results.values()
            continue
        steps.append(step)
        spare |= {stepped, step.call.args[1], *(atom for atom, _ in results.values())}
    if not steps or not all(isinstance(type_of(atom), TensorType) for atom, _ in others):
        return None
    return RowUpdate(write, tuple(steps), tuple(others), frozenset(spare))


def _row_step(value: Expr | None, contents: Contents) -> _TableStep | None:
    match value:
        case Call(Op() as op, (_, Var() as grad, *_), attrs) if op in _TABLES and attrs.get(
            "by_rows", op is sgd_step
        ):
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
