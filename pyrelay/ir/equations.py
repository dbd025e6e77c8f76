"""Equations between sizes: names that values show only as parts of other dims.

A tensor of shape `(2*N + 1,)` shows the dim `2*N + 1`, and so `N`, which is half of what is left
after 1 is subtracted; one of shape `(N*N,)` shows `N` as its square root. A `Solution` states such
a root of a quotient; all solutions of a scope are found by elimination, in an order in which each
uses only what is shown or was found before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, TypeAlias, final

from ..dataclass import dataclass
from .dims import ONE, ZERO, Dim, DimOp, DimVar, Monomial, sum_of

Terms: TypeAlias = tuple[tuple[Dim, Dim], ...]
"""Pairs of factors, the second of which a value shows, or is made of names that are known."""


@final
@dataclass(frozen=True, slots=True)
class Solution:
    """A size as a root of a quotient: the sum of the products in `terms`, divided by `divisor`, is
    the size to the power of `power`."""

    name: str
    terms: Terms
    divisor: Dim
    power: int = 1


@final
@dataclass(frozen=True, slots=True)
class _Row:
    """A dim whose value is the sum of the products in `terms`."""

    dim: Dim
    terms: Terms


@final
class _Linear:
    """A row as a linear form in powers of the atoms that are not known: their coefficients, and the
    rest."""

    def __init__(self, row: _Row, known: KnownDims) -> None:
        self.row: Final = row
        self.coefficients: Final[dict[Monomial, Dim]] = {}
        self.rest: Final[list[Dim]] = []
        self.is_linear: bool = True
        for monomial, coefficient in row.dim.terms:
            open_ = tuple(atom for atom in monomial if not known.has(Dim.atom(atom)))
            if len(set(open_)) > 1:
                self.is_linear = False
                return
            if not open_:
                self.rest.append(Dim(((monomial, coefficient),)))
                continue
            others = tuple(atom for atom in monomial if atom != open_[0])
            factor = Dim(((others, coefficient),))
            self.coefficients[open_] = self.coefficients.get(open_, ZERO) + factor

    def solution(self) -> Solution | None:
        """Return the solution for the one name that the row leaves open, if it is one."""
        if not self.is_linear or len(self.coefficients) != 1:
            return None
        ((powers, divisor),) = self.coefficients.items()
        atom = powers[0]
        if not isinstance(atom, DimVar):
            return None
        rest = sum_of(self.rest)
        terms = (*self.row.terms, (Dim.of(-1), rest)) if rest.terms else self.row.terms
        return Solution(atom.name, terms, divisor, len(powers))

    def without(self, powers: Monomial, pivot: _Linear) -> _Row:
        """Return the row with a power of an atom eliminated by another row that has it."""
        own, other = self.coefficients[powers], -pivot.coefficients[powers]
        dim = self.row.dim * other + pivot.row.dim * own
        scaled = (*_scaled(self.row.terms, other), *_scaled(pivot.row.terms, own))
        return _Row(dim, scaled)


@final
class KnownDims:
    """The dims whose values a scope has."""

    def __init__(self, dims: Iterable[Dim]) -> None:
        self.dims: Final = set(dims)

    def has(self, dim: Dim) -> bool:
        """Return whether a dim is shown, or is computed from dims that are."""
        return not any(True for _ in uncovered(dim, self.dims))


def uncovered(dim: Dim, known: Collection[Dim]) -> Iterator[Dim]:
    """Return the parts of a dim, each one atom, that dims already known do not determine."""
    pending = [dim]
    while pending:
        current = pending.pop()
        if current in known:
            continue
        for atom in (a for monomial, _ in current.terms for a in monomial):
            part = Dim.atom(atom)
            if part in known:
                continue
            if isinstance(atom, DimOp):
                pending += (atom.left, atom.right)
            else:
                yield part


def solutions(shown: Iterable[Dim], wanted: Collection[str]) -> list[Solution]:
    """Return how to compute the wanted names from dims that values show, in order. Names that the
    dims do not determine are left out."""
    dims = list(dict.fromkeys(shown))
    known = KnownDims(dims)
    rows = [_Row(d, ((ONE, d),)) for d in dims if d.single is None and d.constant is None]
    found: list[Solution] = []
    while not all(known.has(Dim.of(name)) for name in wanted):
        solution = _next(rows, known)
        if solution is None:
            break
        found.append(solution)
        known.dims.add(Dim.of(solution.name))
    return _used(found, frozenset(dims), wanted)


def _next(rows: list[_Row], known: KnownDims) -> Solution | None:
    """Return the next name that rows determine, alone or together."""
    linear = [_Linear(row, known) for row in rows]
    while linear:
        for each in linear:
            solution = each.solution()
            if solution is not None:
                return solution
        linear = _eliminated([each for each in linear if each.is_linear], known)
    return None


def _eliminated(rows: list[_Linear], known: KnownDims) -> list[_Linear]:
    """Return the rows with one power of an atom fewer, and without the row that eliminates it."""
    pivot = next((row for row in rows if row.coefficients), None)
    if pivot is None:
        return []
    powers = next(iter(pivot.coefficients))
    others = [row for row in rows if row is not pivot]
    return [
        _Linear(row.without(powers, pivot), known) if powers in row.coefficients else row
        for row in others
    ]


def _used(found: list[Solution], shown: Collection[Dim], wanted: Collection[str]) -> list[Solution]:
    """Return the solutions that the wanted names take, in order."""
    needed = set(wanted)
    kept: list[Solution] = []
    for solution in reversed(found):
        if solution.name not in needed:
            continue
        kept.append(solution)
        for dim in (solution.divisor, *(d for pair in solution.terms for d in pair)):
            needed.update(part.name for part in uncovered(dim, shown) if part.name is not None)
    return kept[::-1]


def _scaled(terms: Terms, factor: Dim) -> Terms:
    return tuple((factor * own, dim) for own, dim in terms)


def root_of(coefficients: Sequence[int], wanted: int) -> int | None:
    """Return the size at which a polynomial has a value, if there is one. The coefficients of
    powers above 0 are not negative, so it grows."""
    low, high = 0, max(wanted - coefficients[0], 0)
    while low < high:
        middle = (low + high) // 2
        if _at(coefficients, middle) < wanted:
            low = middle + 1
        else:
            high = middle
    return low if _at(coefficients, low) == wanted else None


def _at(coefficients: Sequence[int], size: int) -> int:
    return sum(c * size**power for power, c in enumerate(coefficients))


def root_of_quotient(total: int, divisor: int, power: int = 1) -> int | None:
    """Return the size whose power, times `divisor`, is `total`, if there is one."""
    quotient, rest = divmod(total, divisor)
    if rest or quotient < 0:
        return None
    return quotient if power == 1 else root_of((*(0,) * power, 1), quotient)
