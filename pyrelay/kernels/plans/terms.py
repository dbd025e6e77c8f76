"""The computation of a kernel before it is text: terms, each made once.

A `Term` is one operation on the elements of a kernel. `arithmetic` makes them while bodies are
read, so equal elements are one term, and the text of a kernel computes it once. Terms point only at
terms made before them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, final

from ...dataclass import dataclass
from ...diagnostics.source import Span
from ...ir.dims import Dim
from ...ir.types import DType, DTypeKind, float32


@final
@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One operation: `detail` is what it has besides the terms it works on, and depends on `op`.

    `dtype` is that of computing, so never a half type; None is a number that takes the dtype of
    what it meets.

        const     detail: a Python number
        size      detail: a dim, as an integer
        load      detail: `Access`; operands: where to read, if not everywhere
        value     detail: the position of an operand that is passed by value
        result    of a loop, such as a reduction; detail: its number, and a field of it
        cast      to `dtype`; detail: a half type whose rounding is wanted, or None
        others    see `arithmetic`
    """

    op: str
    operands: tuple[Term, ...]
    dtype: DType | None
    detail: Any
    number: int

    def __repr__(self) -> str:
        inside = ", ".join(f"t{o.number}" for o in self.operands)
        return f"t{self.number} = {self.op}({inside}) {self.detail or ''}"


@final
@dataclass(frozen=True, slots=True)
class Access:
    """Where a load reads: so many elements behind the address of an operand, or of what an earlier
    kernel of the group has stored; and what is stored there."""

    operand: int | str
    offset: Dim
    dtype: DType


@final
class Terms:
    """The terms of one kernel, and what is known of them."""

    def __init__(self) -> None:
        self._made: Final[dict[tuple[Any, ...], Term]] = {}
        self._names: Final[dict[Term, tuple[str, Span]]] = {}
        self._coordinates: Final[dict[str, tuple[Term, Dim]]] = {}
        self._places: Final[set[Term]] = set()

    def make(
        self, op: str, *operands: Term, dtype: DType | None = None, detail: Any = None
    ) -> Term:
        """Return the term of an operation."""
        # As text, since 1, 1.0 and True are equal, and NaN is not.
        shown = repr(detail) if op == "const" else detail
        key = (op, operands, dtype, shown)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Term(op, operands, dtype, detail, len(self._made))
        return found

    def name(self, term: Term, name: str, span: Span) -> None:
        """Remember under which name and where the program computes a term; the first counts."""
        self._names.setdefault(term, (name, span))

    def named(self, term: Term) -> tuple[str, Span] | None:
        """Return the name and place of a term that the program names."""
        return self._names.get(term)

    def bind(self, coordinate: str, term: Term, size: Dim) -> None:
        """Remember that a coordinate is the value of a term, of a dim of a size."""
        self._coordinates[coordinate] = term, size
        self._places.add(term)

    def is_place(self, term: Term) -> bool:
        """Return whether a coordinate is the value of a term."""
        return term in self._places

    @property
    def coordinates(self) -> Mapping[str, tuple[Term, Dim]]:
        """The coordinates that are values, by name: the term, and the size of the dim."""
        return self._coordinates

    def dims(self, term: Term) -> tuple[Dim, ...]:
        """Return the dims that a term computes itself."""
        match term.detail:
            case Dim() as dim:
                return (dim,)
            case Access(offset=offset):
                return (offset,)
            case _:
                return ()

    def found(self, dim: Dim) -> Iterator[str]:
        """Return the coordinates in a dim that are values of terms, in order of mention."""
        for atom in dict.fromkeys(dim.atoms()):
            name = getattr(atom, "name", None)
            if name in self._coordinates:
                yield name

    def rounded(self, term: Term) -> DType | None:
        """Return the half type that a term is certainly an element of, if there is one."""
        match term.detail:
            case Access(dtype=dtype) if is_half(dtype):
                return dtype
            case DType() as dtype:
                return dtype
            case _:
                return None

    def needed(self, roots: Iterable[Term]) -> list[Term]:
        """Return the roots and all terms that they need, each once."""
        seen = dict.fromkeys(roots)
        pending = list(seen)
        while pending:
            missing = [t for t in self.before(pending.pop()) if t not in seen]
            seen |= dict.fromkeys(missing)
            pending += missing
        return list(seen)

    def varying(self, roots: Iterable[Term], coordinates: Collection[str]) -> set[Term]:
        """Return those of the terms that roots need that differ along coordinates."""
        found: set[Term] = set()
        for term in sorted(self.needed(roots), key=lambda t: t.number):
            own = (name for dim in self.dims(term) for name in dim.names())
            if any(name in coordinates for name in own) or not found.isdisjoint(self.before(term)):
                found.add(term)
        return found

    def before(self, term: Term) -> tuple[Term, ...]:
        """Return the terms that one needs: its operands, and the coordinates in its dims."""
        places = (self._coordinates[n][0] for d in self.dims(term) for n in self.found(d))
        return (*term.operands, *places)


def widened(dtype: DType) -> DType:
    """Return the dtype in which elements of a dtype are computed with."""
    return float32 if is_half(dtype) else dtype


def is_half(dtype: DType) -> bool:
    """Return whether elements are widened for computing."""
    return dtype.kind is DTypeKind.FLOAT and dtype.bits < 32
