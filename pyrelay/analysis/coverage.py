"""Coverage of a match: the values that no clause matches, the clauses that never win.

The matrix algorithm of Maranget, "Warnings for pattern matching" (JFP 2007): a matrix has a row
for each clause and a column for each place in the value; it is split by the constructors that
stand in a column until a row matches everything that is left, or no row is left. Both questions
are answered in one walk, a clause being of use if it wins somewhere.

The problem is NP-complete. The walk never looks at one matrix twice, nor at one from which nothing
new follows, and it stops when it has split `BUDGET` rows; `Coverage.is_complete` is False then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice, product
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ..dataclass import dataclass
from ..diagnostics.source import NOWHERE
from ..ir.expr import (
    BindPattern,
    ConstructorPattern,
    LiteralPattern,
    Match,
    Pattern,
    TuplePattern,
    Wildcard,
)
from ..ir.traverse import takes_all
from ..ir.types import AdtType

if TYPE_CHECKING:
    from ..ir.module import AdtDef

BUDGET: Final = 100_000
"""How many rows are split for one match; every node of its patterns adds some more."""

PER_PATTERN: Final = 20

LISTED: Final = 5
"""How many of the cases that are missing are listed."""

Literal: TypeAlias = bool | int | float | str


@final
@dataclass(frozen=True, slots=True)
class Coverage:
    """The values that no clause matches, as patterns; the clauses that never win, with those that
    win instead; and whether this is all that could be known."""

    missing: tuple[Pattern, ...]
    unreachable: Mapping[int, tuple[int, ...]]
    is_complete: bool = True


def coverage(match: Match, adts: Mapping[str, AdtDef]) -> Coverage:
    """Return the coverage of the clauses of a well-typed match. A guarded clause covers nothing."""
    ty = match.value.ty
    if not match.clauses and isinstance(ty, AdtType) and not adts[ty.name].constructors:
        return Coverage((), {})  # there is no value to match
    return _Walk(match, adts).coverage()


@final
@dataclass(frozen=True, slots=True)
class _Head:
    """A constructor, a literal or a tuple, at the head of a pattern."""

    pattern: ConstructorPattern | TuplePattern | LiteralPattern
    arity: int

    def of(self, fields: Sequence[Pattern]) -> Pattern:
        """Return the pattern with this head and these fields."""
        match self.pattern:
            case ConstructorPattern(adt, name):
                return ConstructorPattern(adt, name, tuple(fields), span=NOWHERE)
            case TuplePattern():
                return TuplePattern(tuple(fields), span=NOWHERE)
            case LiteralPattern():
                return self.pattern


@final
@dataclass(frozen=True, slots=True)
class _Decision:
    """A decision on the way to a matrix: what stands at a place; one of several things."""

    before: _Decision | None
    place: int
    heads: tuple[_Head, ...]


_Refutable: TypeAlias = ConstructorPattern | TuplePattern | LiteralPattern
_Asked: TypeAlias = tuple[tuple[int, _Refutable], ...]
_Row: TypeAlias = tuple[int, _Asked]
"""A clause, and the tests it still makes of places in the value, from left to right. Places without
a test are left out, so that deep and wide patterns stay small."""


@final
@dataclass(frozen=True, slots=True)
class _Matrix:
    rows: tuple[_Row, ...]
    path: _Decision | None


@final
@dataclass(slots=True)
class _Found:
    """The state of the walk."""

    useful: set[int] = field(default_factory=set[int])
    winners: dict[int, dict[int, None]] = field(default_factory=dict[int, dict[int, None]])
    missing: list[Pattern] = field(default_factory=list[Pattern])


@final
class _Walk:
    """The walk over the matrices of one match."""

    def __init__(self, match: Match, adts: Mapping[str, AdtDef]) -> None:
        self._adts: Final = adts
        self._clauses: Final = match.clauses
        self._found: Final = _Found()
        self._seen: Final[set[tuple[_Row, ...]]] = set()
        self._places: Final[dict[tuple[int, object, int], int]] = {}
        """The places of fields: of which place, under which head, which field."""
        size = sum(_size(c.pattern) for c in match.clauses)
        self._budget = BUDGET + PER_PATTERN * size

    def coverage(self) -> Coverage:
        """Return the coverage of the clauses."""
        rows = tuple((i, self._asked(_ROOT, c.pattern)) for i, c in enumerate(self._clauses))
        pending = [_Matrix(rows, None)]
        while pending and self._budget > 0:
            pending += reversed(self._parts(pending.pop()))
        found, is_complete = self._found, not pending
        never = [i for i in range(len(self._clauses)) if i not in found.useful]
        return Coverage(
            tuple(found.missing),
            {i: tuple(found.winners.get(i, ())) for i in never} if is_complete else {},
            is_complete,
        )

    def _parts(self, matrix: _Matrix) -> list[_Matrix]:
        """Decide a matrix whose first rows take everything, or split it."""
        rows = self._after_guards(matrix.rows)
        if not rows:
            self._note_missing(matrix)
            return []
        if self._tells_nothing(rows):
            return []
        first, asked = rows[0]
        if not asked:
            self._note_winner(first, rows)
            return []
        if rows in self._seen:
            return []
        self._seen.add(rows)
        return self._split(_Matrix(rows, matrix.path), asked[0][0])

    def _after_guards(self, rows: tuple[_Row, ...]) -> tuple[_Row, ...]:
        """Return the rows without guarded ones at the top that take everything: they may win."""
        for number, (clause, asked) in enumerate(rows):
            if asked or self._clauses[clause].guard is None:
                return rows[number:]
            self._found.useful.add(clause)
        return ()

    def _tells_nothing(self, rows: tuple[_Row, ...]) -> bool:
        """Return whether all clauses in a matrix are known to win, and what it misses is not asked:
        enough is listed, or a row takes everything that is left."""
        useful = self._found.useful
        if any(clause not in useful for clause, _ in rows):
            return False
        last, asked = rows[-1]
        has_rest = self._clauses[last].guard is None and not asked
        return has_rest or len(self._found.missing) > LISTED

    def _note_winner(self, winner: int, rows: tuple[_Row, ...]) -> None:
        useful = self._found.useful
        useful.add(winner)
        for clause, _ in rows[1:]:
            if clause not in useful:
                self._found.winners.setdefault(clause, {})[winner] = None

    def _note_missing(self, matrix: _Matrix) -> None:
        room = LISTED + 1 - len(self._found.missing)
        self._found.missing += islice(self._values(matrix.path), max(0, room))

    def _values(self, step: _Decision | None) -> Iterator[Pattern]:
        """Return patterns for the values that come to a matrix, from the decisions before it."""
        steps: list[_Decision] = []
        while step is not None:
            steps.append(step)
            step = step.before
        for heads in product(*(s.heads for s in steps)):
            made: dict[int | None, Pattern] = {}
            # The latest decision first, so that fields are made before what they are fields of.
            for step, head in zip(steps, heads, strict=True):
                key = _key(head.pattern)
                places = (self._places.get((step.place, key, i)) for i in range(head.arity))
                made[step.place] = head.of([made.get(p, _ANY) for p in places])
            yield made.get(_ROOT, _ANY)

    # Splitting a matrix by what stands at a place.

    def _split(self, matrix: _Matrix, place: int) -> list[_Matrix]:
        heads: dict[object, _Head] = {}
        opened: list[tuple[object | None, _Row]] = []
        for clause, asked in matrix.rows:
            number = next((n for n, (p, _) in enumerate(asked) if p == place), None)
            if number is None:
                opened.append((_ANYTHING, (clause, asked)))
                continue
            pattern = asked[number][1]
            key = _key(pattern)
            heads.setdefault(key, _head(pattern))
            inside = (*asked[:number], *self._fields(place, pattern), *asked[number + 1 :])
            opened.append((key, (clause, inside)))
        rows: dict[object, list[_Row]] = {key: [] for key in heads}
        rest: list[_Row] = []
        for key, row in opened:
            if key is _ANYTHING:
                rest.append(row)
                for others in rows.values():
                    others.append(row)
                self._budget -= len(rows)
            else:
                rows[key].append(row)
        self._budget -= len(opened)
        missing = self._missing(list(heads.values()))
        found = [_Matrix(tuple(rest), _Decision(matrix.path, place, missing))] if missing else []
        return found + [
            _Matrix(tuple(rows[key]), _Decision(matrix.path, place, (head,)))
            for key, head in self._in_order(heads)
        ]

    def _fields(self, place: int, pattern: _Refutable) -> Iterator[tuple[int, _Refutable]]:
        """Return the patterns of the fields at a place."""
        if isinstance(pattern, LiteralPattern):
            return
        key = _key(pattern)
        for number, field_ in enumerate(pattern.fields):
            if not takes_all(field_):
                inside = self._places.setdefault((place, key, number), len(self._places) + 1)
                yield from self._asked(inside, field_)

    def _asked(self, place: int, pattern: Pattern) -> _Asked:
        refutable = _refutable(pattern)
        return () if refutable is None else ((place, refutable),)

    def _in_order(self, heads: dict[object, _Head]) -> list[tuple[object, _Head]]:
        """Return heads in the order in which their type declares them."""
        first = next(iter(heads.values())).pattern
        if not isinstance(first, ConstructorPattern):
            return list(heads.items())
        declared = self._adts[first.adt].constructors
        return [(c.name, heads[c.name]) for c in declared if c.name in heads]

    def _missing(self, heads: Sequence[_Head]) -> tuple[_Head, ...]:
        """Return the other patterns that could stand in the place of some; one literal stands for
        the rest."""
        first = heads[0].pattern
        match first:
            case TuplePattern():
                return ()
            case LiteralPattern(bool()):
                taken = {_key(h.pattern) for h in heads}
                values = [b for b in (True, False) if b not in taken]
                return tuple(_head(LiteralPattern(b, span=NOWHERE)) for b in values)
            case LiteralPattern():
                patterns = [h.pattern for h in heads]
                other = _other([p.value for p in patterns if isinstance(p, LiteralPattern)])
                return (_head(LiteralPattern(other, span=NOWHERE)),)
            case ConstructorPattern(adt):
                taken = {_key(h.pattern) for h in heads}
                return tuple(
                    _Head(ConstructorPattern(adt, c.name, (), span=NOWHERE), len(c.fields))
                    for c in self._adts[adt].constructors
                    if c.name not in taken
                )


_ANY: Final = Wildcard(span=NOWHERE)
_ROOT: Final = 0
_ANYTHING: Final = object()


def _refutable(pattern: Pattern) -> _Refutable | None:
    """Return the test that a pattern makes of a value, without the names it binds; None if it makes
    none."""
    while isinstance(pattern, BindPattern):
        if pattern.inner is None:
            return None
        pattern = pattern.inner
    return None if isinstance(pattern, Wildcard) else pattern


def _head(pattern: _Refutable) -> _Head:
    return _Head(pattern, 0 if isinstance(pattern, LiteralPattern) else len(pattern.fields))


def _key(pattern: _Refutable) -> object:
    """Return the identity of a head among those of its type."""
    match pattern:
        case ConstructorPattern(name=name):
            return name
        case LiteralPattern(value):
            return value
        case TuplePattern():
            return None


def _other(values: Sequence[Literal]) -> Literal:
    """Return a literal of the same type that is none of these."""
    taken = set(values)
    if any(isinstance(v, str) for v in values):
        texts = ("a" * n for n in range(len(taken) + 1))
        return next(text for text in texts if text not in taken)
    number = next(n for n in range(len(taken) + 1) if n not in taken)
    return float(number) if any(isinstance(v, float) for v in values) else number


def _size(pattern: Pattern) -> int:
    size, pending = 0, [pattern]
    while pending:
        current = pending.pop()
        size += 1
        match current:
            case BindPattern(inner=inner):
                pending += () if inner is None else (inner,)
            case ConstructorPattern(fields=fields) | TuplePattern(fields):
                pending += fields
            case _:
                pass
    return size
