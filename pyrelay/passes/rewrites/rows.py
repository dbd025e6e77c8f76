"""Computations of a loop's rounds on loop-invariant values and on the round's row alone.

Values in a round are *fixed* if they depend on constants and on what every round passes on
unchanged. They are *rows* if they depend on what is fixed and on one row of a tensor, or one
element of a list, alone: `f(xs[i]) = f(xs)[i]`, where `f(xs)` works on all rows at once
(`batching`).

Only what every round computes that goes on is considered, so nothing is computed that may never
be, but where a loop is left early; and of that only operators that cannot fail, unless the loop is
never left early.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, final

from ...analysis.dim_availability import needed, shown, uncovered
from ...analysis.loops import ListPart, Loop, part_of, round_of
from ...dataclass import dataclass
from ...ir.dims import ZERO, Dim, product
from ...ir.expr import Binding, Call, Constant, Expr, Match, Tuple, TupleGet, Var, is_atom, type_of
from ...ir.names import Names
from ...ir.op import Op, ShapeBehaviour
from ...ir.traverse import children, post_order
from ...ir.types import INT, PRELUDE, AdtType, SizeType, TensorType, TupleType
from ...operators.builder import Builder, Value, bind_attrs
from ...operators.primitive.arithmetic import add, subtract
from ...operators.primitive.collect import collected
from ...operators.primitive.compare import less
from ...operators.primitive.embedding import embedding
from ...operators.primitive.index import index
from ..base import Opaque
from ..batching import batched, is_heavy, is_total

_ROW: Final = (("int", 0),)
_LIST: Final = f"{PRELUDE}List"

GROWTH: Final = 4
"""How many times as large as its row a value may be that is computed for all rows at once, unless
it is a product with a weight: all of them are in memory together."""


@final
@dataclass(frozen=True, slots=True)
class _Row:
    """Values of all rows, and where the round's row is among them."""

    all: Value
    place: Expr
    count: Dim
    is_given: bool = False
    """Whether it is a row itself, and nothing computed from one."""
    is_heavy: bool = False


@final
@dataclass(frozen=True, slots=True)
class Hoisted:
    """The computation before a loop, and its replacement in the loop.

    `ahead` are the variables of `code` that the loop uses. `reads` are the bindings in the place of
    those of variables of the loop. `counter` counts the rounds where elements of the list `listed`
    are rows.
    """

    code: Sequence[Binding]
    reads: Mapping[Var, Sequence[Binding]]
    ahead: Sequence[Var]
    counter: Var | None = None
    listed: Var | None = None
    found: tuple[str, ...] = ()
    """The names of sizes that the code finds while it runs."""
    params: tuple[Var, ...] = ()
    """The further parameters of the loop, the counter last."""


def hoisted(loop: Loop, available: frozenset[Dim], names: Names, opaque: Opaque) -> Hoisted | None:
    """Return the part of a loop that is computed before it; None if nothing is. `available` are the
    sizes that are known there; new ones get a name of `names`."""
    return _Analysis(loop, available, names, opaque).hoisted()


@final
class _Analysis:
    """One walk over a round."""

    def __init__(self, loop: Loop, available: frozenset[Dim], names: Names, opaque: Opaque) -> None:
        self._loop: Final = loop
        self._opaque: Final = opaque
        self._round: Final = round_of(loop)
        self._builder: Final = Builder(loop.function.span, names)
        params = loop.fixed_params() if loop.knows_start else frozenset[Var]()
        self._given: Final = loop.around | params
        self._available: Final = available.union(d for v in self._given for d in shown(v.ty))
        self._fixed: Final[dict[Expr, Value]] = {}
        self._rows: Final[dict[Expr, _Row]] = {}
        self._lists: Final[dict[Expr, Value | None]] = {}
        self._counter: Final = Var("row", INT, span=loop.function.span)
        self._bounds: Final = dict(self._counted())

    def hoisted(self) -> Hoisted | None:
        """Return the bindings that are computed before the loop."""
        for binding in self._round.bindings:
            self._look_at(binding.var, binding.value)
        reads = {v: [Binding(v, f.atom)] for v, f in self._moved_fixed()}
        rows = [(v, row) for v, row in self._worth()]
        reads |= {v: self._read(v, row) for v, row in rows}
        if not reads:
            return None
        used = {a for bs in reads.values() for b in bs for a in (b.value, *children(b.value))}
        ahead = [b.var for b in self._builder.bindings if b.var in used]
        listed = next((row.place for _, row in rows if row.place in self._lists), None)
        assert listed is None or isinstance(listed, Var)
        counter = None if listed is None else self._counter
        whole = None if listed is None else self._lists[listed]
        found = () if whole is None else tuple(sorted(whole.shape[0].names()))
        return Hoisted(self._builder.bindings, reads, ahead, counter, listed, found)

    # Counting.

    def _counted(self) -> Iterator[tuple[Expr, set[Dim]]]:
        """Return the parameters that count rounds from 0, each with the numbers of rounds."""
        for place, param in enumerate(self._loop.params):
            bounds = {
                _dim(test.args[1])
                for test in self._round.tests
                if isinstance(test, Call) and test.callee is less and test.args[0] is param
            }
            starts = all(_is(call.args[place], 0) for call in self._loop.outside)
            if bounds and starts and all(map(self._is_next(param), self._loop.passed(place))):
                yield param, {bound for bound in bounds if bound is not None}

    def _is_next(self, param: Var) -> Callable[[Expr], bool]:
        def is_next(atom: Expr) -> bool:
            match self._round.made.get(atom):
                case Call(callee, (before, step)):
                    return callee is add and before is param and _is(step, 1)
                case _:
                    return False

        return is_next

    def _counter_at(self, position: Expr) -> Expr | None:
        """Return the counter that a position goes up or down with, if it does."""
        match self._round.made.get(position):
            case Call(callee, (last, counter)) if callee is subtract and self._is_fixed(last):
                position = counter
            case _:
                pass
        return position if position in self._bounds else None

    # Values of a round.

    def _is_fixed(self, atom: Expr) -> bool:
        return not isinstance(atom, Var) or atom in self._given or atom in self._fixed

    def _before(self, atom: Expr) -> Value:
        """Return a fixed atom as it is before the loop."""
        return self._fixed.get(atom) or self._builder.value(atom)

    def _look_at(self, var: Var, value: Expr) -> None:
        if is_atom(value):
            if isinstance(value, Var) and self._is_fixed(value):
                self._fixed[var] = self._before(value)
            return
        row = self._row(value)
        if row is not None:
            self._rows[var] = row
            return
        if not all(map(self._is_fixed, children(value))):
            return
        match value:
            case TupleGet(source, index):
                self._fixed[var] = self._before(source)[index]
            case Tuple(fields) if fields:
                self._fixed[var] = self._builder.tuple([self._before(f) for f in fields])
            case Call(Op() as op) if self._may_move(value) and is_total(value):
                if op.shape is not ShapeBehaviour.FACTORY:
                    args = tuple(self._before(a).atom for a in value.args)
                    self._fixed[var] = self._builder.bind(replace(value, args=args), var.name)
            case _:
                pass

    def _may_move(self, call: Call) -> bool:
        """Return whether a call may stand before the loop."""
        sizes = (part for dim in needed(call) for part in uncovered(dim, self._available))
        assert isinstance(call.callee, Op)
        return not self._opaque(call.callee) and not any(True for _ in sizes)

    def _row(self, value: Expr) -> _Row | None:
        """Return the values of all rows, if a value depends on one row alone."""
        match value:
            case Call(callee, (source, position), attrs) if (
                callee is index and attrs["spec"] == _ROW and self._is_fixed(source)
            ):
                return self._row_of_tensor(source, position)
            case Call(Op()):
                return self._computed(value)
            case Match():
                part = part_of(value)
                return None if part is None or part.index else self._row_of_list(part.of)
            case _:
                return None

    def _row_of_tensor(self, source: Expr, position: Expr) -> _Row | None:
        made = self._round.made.get(position)
        place = made.fields[0] if isinstance(made, Tuple) else None
        counter = None if place is None else self._counter_at(place)
        ty = type_of(source)
        if (
            place is None
            or counter is None
            or not isinstance(ty, TensorType)
            or self._opaque(index)
        ):
            return None
        whole, count = self._before(source), ty.shape[0]
        if count in self._bounds[counter]:
            return _Row(whole, place, count, is_given=True)
        return self._first_rows(whole, place) if place is counter else None

    def _first_rows(self, whole: Value, counter: Expr) -> _Row | None:
        """Return the rows that are reached, where the loop ends before the last."""
        for bound in self._bounds[counter]:
            spec = (("slice", None, bound, None),)
            if any(uncovered(bound, self._available)):
                continue
            first = index(whole, self._builder.unit(), spec=spec)
            if first.shape[0] == bound:
                return _Row(first, counter, bound, is_given=True)
        return None

    def _row_of_list(self, items: Expr) -> _Row | None:
        if items not in self._lists:
            self._lists[items] = self._collected(items)
        whole = self._lists[items]
        return None if whole is None else _Row(whole, items, whole.shape[0], is_given=True)

    def _collected(self, items: Expr) -> Value | None:
        """Return the elements of a list side by side, if each round takes the next of them. The
        parameter of the loop stands for the list before the first round."""
        ty = items.ty
        element = ty.args[0] if isinstance(ty, AdtType) and ty.name == _LIST else None
        if items not in self._loop.params or not isinstance(element, TensorType):
            return None
        if not self._loop.knows_start or self._opaque(index):
            return None
        assert isinstance(items, Var)
        if not element.shape or any(self._lists.values()):
            return None  # numbers may be Python's, and one list is enough
        for atom in self._loop.passed(self._loop.params.index(items)):
            made = self._round.made.get(atom)
            part = part_of(made) if isinstance(made, Match) else made
            if not isinstance(part, ListPart) or part.of is not items or part.index != 1:
                return None
        known = (d if not any(uncovered(d, self._available)) else ZERO for d in element.shape)
        lists, shape = (self._builder.value(items),), tuple(known)
        return collected(lists, ((element,),), ((shape,),))[0][0]

    def _computed(self, call: Call) -> _Row | None:
        """Return a call on rows as one on all rows at once."""
        found = [self._rows[a] for a in call.args if a in self._rows]
        if not found or any(row.place is not found[0].place for row in found):
            return None
        if any(row.count != found[0].count for row in found):
            return None
        if not all(a in self._rows or self._is_fixed(a) for a in call.args):
            return None
        assert isinstance(call.callee, Op)
        may_fail = (
            call.callee is embedding and self._loop.may_fail and not self._round.is_left_early
        )
        if not self._may_move(call) or not (is_total(call) or may_fail):
            return None
        heavy = is_heavy(call.callee)
        rows = [type_of(a) for a in call.args if a in self._rows]
        if not heavy and not _is_bounded(call, rows):
            return None
        is_row = [a in self._rows for a in call.args]
        operands = [self._rows[a].all if a in self._rows else self._before(a) for a in call.args]
        self._builder.span = call.span
        whole = batched(self._builder, call, operands, is_row, found[0].count)
        if whole is None:
            return None
        is_heavy_here = heavy or any(row.is_heavy for row in found)
        return _Row(whole, found[0].place, found[0].count, is_heavy=is_heavy_here)

    # What pays.

    def _moved_fixed(self) -> Iterator[tuple[Var, Value]]:
        """Return the variables whose fixed value an operator computes."""
        for binding in self._round.bindings:
            if binding.var in self._fixed and isinstance(binding.value, Call):
                yield binding.var, self._fixed[binding.var]

    def _worth(self) -> Iterator[tuple[Var, _Row]]:
        """Return the rows that the loop reads instead of computing them: where that leaves fewer
        calls of operators in a round, or a weight is read once instead of in each round."""
        left = Counter(n for n in post_order(self._loop.function.body) if isinstance(n, Var))
        for binding in self._round.bindings:
            if binding.var in self._rows:
                left.subtract(a for a in children(binding.value) if isinstance(a, Var))
        groups: dict[Expr, list[tuple[Var, _Row]]] = {}
        for var, row in self._rows.items():
            assert isinstance(var, Var)
            groups.setdefault(row.place, []).append((var, row))
        for place, group in groups.items():
            read = [(v, row) for v, row in group if left[v] > 0 and not row.is_given]
            gone = len(group) - sum(left[v] > 0 for v, row in group if row.is_given)
            heavy = any(row.is_heavy for _, row in read)
            if heavy or (gone > len(read) and place not in self._lists):
                yield from read

    def _read(self, var: Var, row: _Row) -> list[Binding]:
        """Return the bindings that take the place of a variable's in the loop."""
        span = var.span
        place = self._counter if row.place in self._lists else row.place
        at = Var("at", TupleType((type_of(place),)), span=span)
        operands = (row.all.atom, at)
        call = Call(index, operands, bind_attrs(index, {"spec": _ROW}), ty=var.ty, span=span)
        return [Binding(at, Tuple((place,), at.ty, span=span)), Binding(var, call)]


def _dim(bound: Expr) -> Dim | None:
    """Return an upper bound as a size."""
    if isinstance(bound.ty, SizeType):
        return bound.ty.dim
    value = bound.value if isinstance(bound, Constant) else None
    return Dim.of(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _is(atom: Expr, number: int) -> bool:
    return isinstance(atom, Constant) and type(atom.value) is int and atom.value == number


def _is_bounded(call: Call, rows: Sequence[object]) -> bool:
    """Return whether the value of a call is not much larger than one of the rows."""
    ty = type_of(call)
    assert isinstance(ty, TensorType)
    for row in rows:
        assert isinstance(row, TensorType)
        size = product(row.shape)
        ratio = product(ty.shape).exact_quotient(size)
        known = None if ratio is None else ratio.constant
        if known is not None and known <= GROWTH:
            return True
        if product(ty.shape).constant == 1 or size.exact_quotient(product(ty.shape)) is not None:
            return True
    return False
