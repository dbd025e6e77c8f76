"""Places simplified by what is known of their coordinates.

A place is made of dims (`ir.declaration.elements.Place`) over coordinates, each at least 0 and less
than its size, and over sizes, which are at least 1 wherever there is an element to ask for. So
`(i*K + k) // K` is `i` and `(i*K + k) % K` is `k` for a coordinate `k` of a dim of size `K`, and
what one reshape takes apart another puts together again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Final, final

from ..ir.bounds import is_nonnegative, positive_part
from ..ir.dims import ONE, ZERO, Dim, DimAtom, DimOp, DimVar, Monomial, product
from ..operators.shared.moving import linear


def step_along(place: Dim, name: str) -> Dim | None:
    """Return how far apart neighbours along a coordinate lie; None where that differs."""
    step = place.rename({name: Dim.of(name) + 1}) - place
    return None if name in step.names() else step


@final
class Places:
    """The coordinates of a kernel and what follows from their sizes."""

    def __init__(self) -> None:
        self._sizes: Final[dict[str, Dim]] = {}
        self._least: Final[dict[str, int]] = {}
        self._simple: Final[dict[DimAtom, Dim]] = {}
        self._simplified: Final[dict[Dim, Dim]] = {}
        """Dims simplified by the coordinates that there are: most places are asked for again."""

    def coordinate(self, name: str, size: Dim) -> Dim:
        """Return a new coordinate of a dim of a size; names are unlike those of sizes.

        The only coordinate of a dim of size 1 is 0.
        """
        if size == ONE:
            return ZERO
        self._sizes[name] = size
        self._learn(size)
        self._simplified.clear()
        return Dim.of(name)

    def size(self, coordinate: str) -> Dim | None:
        """Return the size of the dim that a coordinate is of; None for what is no coordinate."""
        return self._sizes.get(coordinate)

    def index(self, prefix: str, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return a new coordinate for each dim of a shape: the prefix and its number."""
        return tuple(self.coordinate(f"{prefix}{i}", size) for i, size in enumerate(shape))

    def simplified(self, dim: Dim) -> Dim:
        """Return an equal dim with fewer divisions."""
        if not any(isinstance(a, DimOp) for m, _ in dim.terms for a in m):
            return dim
        found = self._simplified.get(dim)
        if found is None:
            found = self._simplified[dim] = self._with_fewer_divisions(dim)
        return found

    def _with_fewer_divisions(self, dim: Dim) -> Dim:
        total = ZERO
        for monomial, coefficient in dim.terms:
            term = Dim.of(coefficient)
            for atom in monomial:
                term = term * self._atom(atom)
            total = total + term
        return self._recombined(total)

    def relocated(
        self, index: Sequence[Dim], shape: Sequence[Dim], other: Sequence[Dim]
    ) -> tuple[Dim, ...]:
        """Return where an element at `index` of `shape` is when the elements, row by row, are given
        another shape."""
        if tuple(shape) == tuple(other):
            return tuple(index)
        position = self.simplified(linear(index, shape))
        found: list[Dim] = []
        for axis, size in enumerate(other):
            if size == ONE:
                found.append(ZERO)
                continue
            behind = product(tuple(other[axis + 1 :]))
            whole = self.quotient(position, behind)
            leads = all(d == ONE for d in other[:axis])
            found.append(self.simplified(whole if leads else self.remainder(whole, size)))
        return tuple(found)

    def quotient(self, dim: Dim, by: Dim) -> Dim:
        """Return `dim // by`, for `by` of at least 1."""
        if by == ONE or not dim.terms:
            return dim
        for whole, rest in _divided(dim, by):
            if self.is_below(rest, by):
                return whole
        whole, rest = next(_divided(dim, by))
        return whole + self._small_quotient(rest, by)

    def _small_quotient(self, dim: Dim, by: Dim) -> Dim:
        if not dim.terms:
            return ZERO
        match dim.single:
            case DimOp("floordiv", left, right):
                return self.quotient(left, right * by)
            case DimOp("mod", left, right) if (count := right.exact_quotient(by)) is not None:
                return self.remainder(self.quotient(left, by), count)
            case _:
                pass
        for part, others in self._factors(dim, by):
            for whole, rest in _divided(dim, part):
                if self.is_below(rest, part):
                    return self.quotient(whole, others)
        return dim // by

    def remainder(self, dim: Dim, by: Dim) -> Dim:
        """Return `dim % by`, for `by` of at least 1."""
        if by == ONE or not dim.terms:
            return ZERO
        for _, rest in _divided(dim, by):
            if self.is_below(rest, by):
                return rest
        _, rest = next(_divided(dim, by))
        match rest.single:
            case DimOp("mod", left, right) if right.exact_quotient(by) is not None:
                return self.remainder(left, by)
            case _:
                pass
        for part, others in self._factors(rest, by):
            for whole, small in _divided(rest, part):
                if self.is_below(small, part):
                    return part * self.remainder(whole, others) + small
        return rest % by

    def _factors(self, dim: Dim, by: Dim) -> Iterator[tuple[Dim, Dim]]:
        """Return ways to write `by` as a product of two sizes, the first of which may divide much
        of a dim."""
        tried = {ONE, by}
        terms = dim.terms if len(by.terms) == 1 else ()
        for part in (*(_common_factor(Dim((t,)), by) for t in terms), *self._spans(dim)):
            if part in tried:
                continue
            tried.add(part)
            others = by.exact_quotient(part)
            if others is not None:
                yield part, others

    def _spans(self, dim: Dim) -> Iterator[Dim]:
        """Return the sizes of the last coordinate, of the last two, and so on."""
        part = ONE
        names = (a.name for m, _ in reversed(dim.terms) for a in m if isinstance(a, DimVar))
        for name in dict.fromkeys(names):
            if name in self._sizes:
                part = part * self._sizes[name]
                yield part

    def is_below(self, dim: Dim, size: Dim) -> bool:
        """Return whether a dim is provably at least 0 and less than a size of at least 1."""
        if not dim.terms:
            return True
        low, high = self.bounds(dim)
        if low is None or high is None:
            return False
        return self._is_nonnegative(low) and self._is_nonnegative(size - 1 - high)

    def bounds(self, dim: Dim) -> tuple[Dim | None, Dim | None]:
        """Return a lower and an upper bound without coordinates, where some are known."""
        low: Dim | None = ZERO
        high: Dim | None = ZERO
        for monomial, coefficient in dim.terms:
            least, most = self._monomial_bounds(monomial)
            if coefficient < 0:
                least, most = most, least
            low = None if low is None or least is None else low + least * coefficient
            high = None if high is None or most is None else high + most * coefficient
        return low, high

    def _monomial_bounds(self, monomial: Monomial) -> tuple[Dim | None, Dim | None]:
        pairs = [self._atom_bounds(atom) for atom in monomial]
        if len(pairs) == 1:
            return pairs[0]
        lows = [low for low, _ in pairs if low is not None]
        highs = [high for _, high in pairs if high is not None]
        if len(lows) < len(pairs) or not all(map(self._is_nonnegative, lows)):
            return None, None
        return product(tuple(lows)), product(tuple(highs)) if len(highs) == len(pairs) else None

    def _atom_bounds(self, atom: DimAtom) -> tuple[Dim | None, Dim | None]:
        own = Dim.atom(atom)
        if not any(name in self._sizes for name in own.names()):
            return own, own
        match atom:
            case DimVar(name):
                return ZERO, self._sizes[name] - 1
            case DimOp("floordiv", left, right):
                low, high = self.bounds(left)
                return (
                    None if low is None else low // right,
                    None if high is None else high // right,
                )
            case DimOp("mod", left, right):
                low, high = self.bounds(left)
                if low is not None and high is not None and self._is_nonnegative(low):
                    return ZERO, high if self._is_nonnegative(right - 1 - high) else right - 1
                return ZERO, right - 1
            case DimOp(_, left, _):
                low, high = self.bounds(left)
                return (
                    ZERO if low is None else positive_part(low),
                    None if high is None else positive_part(high),
                )
            case _:
                return None, None

    def _is_nonnegative(self, dim: Dim) -> bool:
        """Return whether a dim of sizes, each at least 1, is provably at least 0."""
        if dim.constant is not None:
            return dim.constant >= 0
        least = {name: Dim.of(name) + self._least.get(name, 1) for name in dim.names()}
        return is_nonnegative(dim.rename(least))

    def _learn(self, size: Dim) -> None:
        """Note what a size of at least 1 says of the one name in it."""
        names = sorted(size.names())
        if len(names) != 1:
            return
        name = names[0]
        # `k*N + c >= 1` and `(k*N + c) // d + e >= 1` hold from some N on, which is near.
        for least in range(self._least.get(name, 1), _SEARCHED):
            if size.evaluate({name: least}) >= 1:
                if all(size.evaluate({name: n}) < 1 for n in range(1, least)):
                    self._least[name] = max(least, self._least.get(name, 1))
                return

    def _atom(self, atom: DimAtom) -> Dim:
        if not isinstance(atom, DimOp):
            return Dim.atom(atom)
        found = self._simple.get(atom)
        if found is None:
            found = self._simple[atom] = self._operation(atom)
        return found

    def _operation(self, atom: DimOp) -> Dim:
        left = self.simplified(atom.left)
        match atom.kind:
            case "floordiv":
                return self.quotient(left, self.simplified(atom.right))
            case "mod":
                return self.remainder(left, self.simplified(atom.right))
            case _:
                low, high = self.bounds(left)
                if low is not None and self._is_nonnegative(low):
                    return left
                if high is not None and self._is_nonnegative(-high):
                    return ZERO
                return positive_part(left)

    def _recombined(self, dim: Dim) -> Dim:
        """Put together what a division took apart: `x // a * a + x % a` is `x`, and
        `x // a % b * a + x % a` is `x % (a*b)`."""
        for monomial, coefficient in dim.terms:
            for place, atom in enumerate(monomial):
                if not isinstance(atom, DimOp) or atom.kind != "mod":
                    continue
                others = Dim((((*monomial[:place], *monomial[place + 1 :]), coefficient),))
                found = self._partner(dim, atom, others)
                if found is not None:
                    return self._recombined(found)
        return dim

    def _partner(self, dim: Dim, low: DimOp, others: Dim) -> Dim | None:
        """Return a dim with `others * low` and what belongs to it made one term."""
        whole = self.quotient(low.left, low.right)
        rest = dim - others * Dim.atom(low)
        taken = rest - others * low.right * whole
        if whole.terms and len(taken.terms) == len(rest.terms) - len(whole.terms):
            return taken + others * low.left
        for monomial, _ in rest.terms:
            for atom in monomial:
                if not isinstance(atom, DimOp) or atom.kind != "mod" or atom.left != whole:
                    continue
                taken = rest - others * low.right * Dim.atom(atom)
                if len(taken.terms) == len(rest.terms) - 1:
                    return taken + others * self.remainder(low.left, low.right * atom.right)
        return None


_SEARCHED: Final = 64
"""Sizes that must be larger than this for an element to exist are not looked for."""


def _divided(dim: Dim, by: Dim) -> Iterator[tuple[Dim, Dim]]:
    """Return ways to write a dim as `whole * by + rest`; the first takes only what divides."""
    whole = ZERO
    for monomial, coefficient in dim.terms:
        found = Dim(((monomial, coefficient),)).exact_quotient(by)
        whole = whole if found is None else whole + found
    yield whole, dim - whole * by
    if by.constant is not None:
        whole = dim // by
        if not any(isinstance(a, DimOp) for m, _ in whole.terms for a in m):
            yield whole, dim - whole * by
    elif len(by.terms) > 1:
        yield _long_division(dim, by)


def _long_division(dim: Dim, by: Dim) -> tuple[Dim, Dim]:
    lead = Dim(by.terms[:1])
    whole, rest = ZERO, dim
    for _ in range(_SEARCHED):
        terms = (Dim((term,)).exact_quotient(lead) for term in rest.terms)
        found = next((t for t in terms if t is not None), None)
        if found is None:
            break
        whole, rest = whole + found, rest - found * by
    return whole, rest


def _common_factor(left: Dim, right: Dim) -> Dim:
    """Return the largest dim of one term that divides two dims of one term."""
    (one, a), (other, b) = left.terms[0], right.terms[0]
    shared: list[DimAtom] = []
    left_over = list(other)
    for atom in one:
        if atom in left_over:
            left_over.remove(atom)
            shared.append(atom)
    return Dim(((tuple(shared), gcd(a, b)),))


def steps_of(offset: Dim) -> Iterator[tuple[str, Dim]]:
    """Return how far apart in memory neighbours along coordinates and sizes are, as far as the dim
    shows it: `%i % 4` and `%i` step by 1 in `%i % 4 + %i // 4 * 8` and `%i * 1`."""
    found: dict[str, Dim] = {}
    for monomial, factor in offset.terms:
        for place, atom in enumerate(monomial):
            inner = atom.left if isinstance(atom, DimOp) and atom.kind == "mod" else Dim.atom(atom)
            if inner.name is None:
                continue
            others = (*monomial[:place], *monomial[place + 1 :])
            found.setdefault(inner.name, Dim(((others, factor),)))
    yield from found.items()
