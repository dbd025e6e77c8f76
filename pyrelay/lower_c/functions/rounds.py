"""How many rounds a loop takes, as far as it is known when it begins.

A loop counts up to a size, or walks along data, such as what a loop before it has saved. Then what
each round makes for data is a row of a column, whose rows lie side by side in memory, in the order
of the list that a gradient collects: that of the rounds where the loop counts, the reverse where it
walks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final, final

from ...analysis.loops import Loop, Round, round_of
from ...dataclass import dataclass
from ...ir.expr import (
    BindPattern,
    Call,
    Constant,
    ConstructorPattern,
    Expr,
    Function,
    Match,
    Pattern,
    Var,
    type_of,
)
from ...ir.types import AdtType, int64
from ...kernels.function_plan import Planned
from ...operators.primitive.arithmetic import add
from ...operators.primitive.compare import less
from .c_types import CTypes, number_dtype


@final
@dataclass(frozen=True, slots=True)
class Counting:
    """A loop that goes on while a parameter, which each round makes larger by one, is less than a
    number."""

    at: Var
    end: Expr


@final
@dataclass(frozen=True, slots=True)
class Walking:
    """A loop along data: the next node lies in a field of a node that one constructor makes."""

    at: Var
    constructor: str
    field: int


@final
@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of a loop, and the variables that each of them binds."""

    way: Counting | Walking
    bound: frozenset[Var]


def rounds_of(function: Function, calls: Sequence[Call]) -> Rounds | None:
    """Return how many rounds a loop takes at most, which calls itself at `calls`; None where that
    is not known when it begins."""
    loop = Loop(function, calls, (), frozenset(), may_fail=False, knows_start=False)
    found = round_of(loop)
    way = _counting(loop, found) or _walking(loop, found)
    return None if way is None else Rounds(way, frozenset(b.var for b in found.bindings))


def _counting(loop: Loop, found: Round) -> Counting | None:
    match found.tests:
        case [Call(op, (Var() as at, end))] if op is less and at in loop.params:
            place = loop.params.index(at)
        case _:
            return None
    is_fixed = isinstance(end, Constant) or end in loop.fixed_params()
    is_fixed = is_fixed and number_dtype(type_of(at)) == number_dtype(type_of(end)) == int64
    steps = [found.made.get(passed) for passed in loop.passed(place)]
    return Counting(at, end) if is_fixed and all(_is_next(s, at) for s in steps) else None


def _is_next(step: object, at: Var) -> bool:
    match step:
        case Call(op, (first, Constant(value=1))) if op is add:
            return first is at
        case _:
            return False


def _walking(loop: Loop, found: Round) -> Walking | None:
    match found.tests:
        case [Match(Var() as at, clauses), *_] if at in loop.params:
            passed = loop.passed(loop.params.index(at))
        case _:
            return None
    steps = [step for c in clauses if (step := _step(c.pattern, passed)) is not None]
    return Walking(at, *steps[0]) if len(steps) == 1 else None


def _step(pattern: Pattern, passed: Sequence[Expr]) -> tuple[str, int] | None:
    """Return the constructor and the field of a pattern whose variable goes to the next round."""
    if not isinstance(pattern, ConstructorPattern):
        return None
    for index, part in enumerate(pattern.fields):
        if isinstance(part, BindPattern) and passed and all(p is part.var for p in passed):
            return pattern.name, index
    return None


@final
@dataclass(slots=True)
class Column:
    """The rows of one value of a loop: the name of what hands them out, the bytes of a row, and the
    parameter whose first value lies before them, if there is one."""

    name: str
    bytes: str
    first: str | None = None


@final
@dataclass(slots=True)
class Columns:
    """The columns of a loop while it is written."""

    loop: Planned
    rounds: Rounds
    columns: dict[str, Column] = field(default_factory=dict[str, Column])
    """By the name of the value."""
    side_by_side: Sequence[str] = ()
    """The values whose rows of one round lie side by side, as they die together (`dying.py`)."""
    ahead: tuple[str, str] | None = None
    """A tensor that the loop reads row by row, in whose room these rows may be made, and the bytes
    of a row of it."""
    dying: int | None = None
    """A field of the nodes that the loop walks over, the first of those that die."""

    def lead_with(self, value: str, param: str) -> None:
        """Let the first value of a parameter lie before the rows that follow it as its values."""
        column = self.columns.get(value)
        if column is not None and column.first is None and isinstance(self.rounds.way, Counting):
            column.first = param

    def lines(
        self, types: CTypes, atom: Callable[[Expr], str], fresh: Callable[[str], str]
    ) -> list[str]:
        """Return the lines that find room for the columns before the loop."""
        count, at = fresh("rounds"), fresh("columns")
        lines = self._counted(count, types, atom, fresh)
        together = [self.columns[n] for n in self.side_by_side if n in self.columns]
        together = [c for c in together if c.first is None]
        each = [c for c in self.columns.values() if c not in together]
        sizes = {c.name: f"relay_column({count}, {c.bytes}, {_leads(c)})" for c in each}
        left = None
        if self.dying is not None:
            left = next((c for c in each if c.first is None), None)
        if left is not None:
            lines += self._left(left, count, types, atom, fresh)
            sizes[left.name] = f"({left.name}.at ? 0 : {sizes[left.name]})"
        step, first = fresh("step"), fresh("first")
        if together:
            tensor, row = self.ahead or ("0", "0")
            whole = " + ".join(c.bytes for c in together)
            lines.append(f"char *{first} = relay_behind(s, {tensor}, {row}, {whole});")
            lines.append(f"const int64_t {step} = {first} ? {row} : {whole};")
            sizes[step] = f"({first} ? 0 : relay_column({count}, {step}, 1))"
        lines.append(f"char *{at} = relay_columns(s, {' + '.join(sizes.values())});")
        if together:
            lines.append(f"if (!{first}) {first} = relay_next(&{at}, {count}, {step});")
            lines += self._together(together, first, count, step)
        order = -1 if isinstance(self.rounds.way, Walking) else 1
        for c in each:
            made = f"relay_rows_of(&{at}, {count}, {c.bytes}, {_leads(c)}, {order})"
            if c is left:
                lines.append(f"if (!{c.name}.at) {c.name} = {made};")
                continue
            lines.append(f"relay_rows {c.name} = {made};")
            if c.first is not None:
                lines.append(f"{c.first} = relay_leading(&{c.name}, {c.first});")
        return lines

    def _together(self, columns: Sequence[Column], at: str, count: str, step: str) -> list[str]:
        """Return the lines that find the rows which lie side by side."""
        lines: list[str] = []
        before = "0"
        for c in columns:
            part = f"{at} ? (relay_rows){{{at} + {before}, {count}, {step}}} : (relay_rows){{0}}"
            lines.append(f"relay_rows {c.name} = {part};")
            before += f" + {c.bytes}"
        return [*lines, f"relay_dying(s, {at}, {count}, {step});"]

    def _left(
        self,
        column: Column,
        count: str,
        types: CTypes,
        atom: Callable[[Expr], str],
        fresh: Callable[[str], str],
    ) -> list[str]:
        """Return the lines that find rows in the room of those that the walk leaves behind."""
        way, node, row, is_left = self.rounds.way, fresh("node"), fresh("row"), fresh("is_left")
        assert isinstance(way, Walking)
        assert self.dying is not None
        ty = type_of(way.at)
        assert isinstance(ty, AdtType)
        shape = types.shape(ty, way.constructor)
        head = f"{shape.struct} *{node} = {atom(way.at)}; {node}->tag == {shape.tag};"
        step = f"{node} = {node}->{shape.fields[way.field][0]}, {row} -= s->dying_bytes"
        member = f"(char *){node}->{shape.fields[self.dying][0]}"
        return [
            f"char *{row} = s->dying;",
            f"bool {is_left} = {row} && {column.bytes} <= s->dying_bytes;",
            f"for ({head} {step}) {is_left} = {is_left} && {member} == {row};",
            f"relay_rows {column.name} = relay_rows_left(s, {is_left}, {count}, {column.bytes});",
        ]

    def _counted(
        self, count: str, types: CTypes, atom: Callable[[Expr], str], fresh: Callable[[str], str]
    ) -> list[str]:
        way = self.rounds.way
        at = atom(way.at)
        if isinstance(way, Counting):
            end = atom(way.end)
            return [f"const int64_t {count} = {end} > {at} ? {end} - {at} : 0;"]
        ty = type_of(way.at)
        assert isinstance(ty, AdtType)
        shape = types.shape(ty, way.constructor)
        node = fresh("node")
        head = f"{shape.struct} *{node} = {at}; {node}->tag == {shape.tag};"
        step = f"{node} = {node}->{shape.fields[way.field][0]}"
        return [f"int64_t {count} = 0;", f"for ({head} {step}) {count}++;"]


def _leads(column: Column) -> int:
    return int(column.first is not None)


COLUMNS: Final = r"""
typedef struct { char *at; int64_t left, step; } relay_rows;

/* Returns the bytes of a column; far too many where nobody can count them. */
static inline int64_t relay_column(int64_t rounds, int64_t bytes, int64_t before) {
    int64_t found;
    bool is_large = __builtin_mul_overflow(rounds + before, bytes, &found);
    if (is_large || found > (int64_t)1 << 48) found = (int64_t)1 << 48;
    return (found + RELAY_LINE - 1) & ~(int64_t)(RELAY_LINE - 1);
}

/* Returns room for the columns of a loop; none where half of what is left were not enough. */
static inline char *relay_columns(relay_state *s, int64_t bytes) {
    return bytes > 0 && relay_has_heap(s, 2 * (size_t)bytes) ? relay_heap(s, bytes) : 0;
}

static inline relay_rows relay_rows_of(
    char **at, int64_t rounds, int64_t bytes, int64_t before, int64_t order
) {
    if (!*at) return (relay_rows){0};
    char *first = *at + before * bytes;
    *at += relay_column(rounds, bytes, before);
    return (relay_rows){order < 0 ? first + (rounds - 1) * bytes : first, rounds, order * bytes};
}

/* Returns the first row of a column, and goes on behind the one after the last. */
static inline __attribute__((unused))
char *relay_next(char **at, int64_t rounds, int64_t bytes) {
    char *found = *at;
    if (found) *at += relay_column(rounds, bytes, 1);
    return found;
}

/* Returns the row before the first one of a tensor that has room for it, if others fit there. */
static inline __attribute__((unused))
char *relay_behind(relay_state *s, void *tensor, int64_t row, int64_t bytes) {
    bool has_room = tensor && tensor == s->ahead && bytes <= row;
    s->ahead = 0;
    return has_room ? (char *)tensor - row : 0;
}

/* Notes the rows of several columns that lie side by side, with room for one more behind them. */
static inline __attribute__((unused))
void relay_dying(relay_state *s, char *at, int64_t rounds, int64_t bytes) {
    s->dying = at && rounds > 0 ? at + (rounds - 1) * bytes : 0;
    s->dying_bytes = bytes;
}

/* Returns rows that end where the dying ones do: each lies behind the one whose round is next. */
static inline __attribute__((unused))
relay_rows relay_rows_left(relay_state *s, bool is_left, int64_t rounds, int64_t bytes) {
    char *end = s->dying + 2 * s->dying_bytes;
    s->dying = 0;
    return is_left ? (relay_rows){end - bytes, rounds, -bytes} : (relay_rows){0};
}

static inline void *relay_row(relay_state *s, relay_rows *rows, int64_t bytes) {
    if (rows->left <= 0) return relay_heap(s, bytes);
    char *found = rows->at;
    rows->left--;
    rows->at += rows->step;
    return found;
}

/* Copies the first value of what a loop carries before those that follow it. */
static inline __attribute__((unused)) void *relay_leading(relay_rows *rows, void *value) {
    return rows->at ? memcpy(rows->at - rows->step, value, rows->step) : value;
}
"""

AHEAD: Final = r"""
/* Returns room for a tensor, with that of a row before it. */
static inline __attribute__((unused))
void *relay_ahead(relay_state *s, int64_t bytes, int64_t row) {
    int64_t before = (row + RELAY_LINE - 1) & ~(int64_t)(RELAY_LINE - 1);
    s->ahead = 0;
    if (bytes <= 0 || !relay_has_heap(s, 2 * (size_t)(bytes + before))) return relay_room(s, bytes);
    return s->ahead = (char *)relay_heap(s, bytes + before) + before;
}
"""
