"""Dimensions: integer polynomials over named sizes, with floordiv, mod and max as atoms.

A `Dim` is always in normal form (sorted monomials, no zero coefficients), so equality of dims is
structural equality. Design after research on symbolic shapes: polynomials decide nearly all shape
arithmetic of tensor programs at a hundredth of the cost of a computer algebra system.

    dim  ::= sum of  coefficient * atom * ... * atom
    atom ::= name | hole | floordiv(dim, dim) | mod(dim, dim) | max(dim, 0)

The larger and the smaller of two dims are made of the last form, `bounds.positive_part`: so
`min(n, 1) + max(n - 1, 0)` is `n`. `Dim.presented` gives them back as a reader expects them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Final, TypeAlias, final

from ..dataclass import dataclass


@final
@dataclass(frozen=True, slots=True)
class DimVar:
    """A named size, universally quantified by the function whose type mentions it."""

    name: str

    @property
    def key(self) -> str:
        """The text that orders atoms and prints them."""
        return self.name


@final
@dataclass(frozen=True, slots=True)
class DimHole:
    """A size that inference has not found yet; never left in a checked program."""

    number: int

    @property
    def key(self) -> str:
        """The text that orders atoms and prints them."""
        return f"?{self.number}"


@final
@dataclass(frozen=True)
class DimOp:
    """`floordiv`, `mod` or `max` of two dims that did not simplify; a `max` is with 0."""

    kind: str
    left: Dim
    right: Dim

    @cached_property
    def key(self) -> str:
        """The text that orders atoms and prints them."""
        if self.kind == "max":
            return f"max({self.left}, {self.right})"
        sign = {"floordiv": "//", "mod": "%"}[self.kind]
        return f"{_bracket(self.left)} {sign} {_bracket(self.right)}"


DimAtom: TypeAlias = DimVar | DimHole | DimOp
Monomial: TypeAlias = tuple[DimAtom, ...]


@final
@dataclass(frozen=True, slots=True)
class Extreme:
    """`max` or `min` of two dims, as a factor that is shown."""

    kind: str
    left: Dim
    right: Dim


Shown: TypeAlias = "tuple[tuple[DimAtom | Extreme, ...], int]"
"""A term as it is shown: its factors and its coefficient."""


@final
class Dim:
    """An integer polynomial in normal form. Immutable; `+ - * // %` give new dims."""

    __slots__ = ("_hash", "_open", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms: Final = terms
        self._hash: Final = hash(terms)
        self._open: bool | None = None

    @staticmethod
    def of(value: Dim | int | str) -> Dim:
        """Return the dim of an integer or of a name; a dim stays as it is."""
        if isinstance(value, Dim):
            return value
        if isinstance(value, int):
            return Dim((((), value),)) if value else ZERO
        return Dim((((DimVar(value),), 1),))

    @staticmethod
    def atom(atom: DimAtom) -> Dim:
        """Return the dim that is one atom."""
        return Dim((((atom,), 1),))

    @property
    def is_normal(self) -> bool:
        """Whether the terms are as arithmetic makes them, each once and in order."""
        in_order = all(list(m) == sorted(m, key=_atom_key) for m, _ in self.terms)
        return in_order and _normal(dict(self.terms)).terms == self.terms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Dim({self})"

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        parts: list[str] = []
        for monomial, coefficient in self.presented():
            magnitude = abs(coefficient)
            alone = len(monomial) == coefficient == 1
            factors = [_factor(atom, alone=alone) for atom in monomial]
            if magnitude != 1 or not factors:
                factors.insert(0, str(magnitude))
            text = "*".join(factors)
            if parts:
                parts.append(f" - {text}" if coefficient < 0 else f" + {text}")
            else:
                parts.append(f"-{text}" if coefficient < 0 else text)
        return "".join(parts)

    def presented(self) -> tuple[Shown, ...]:
        """Return the terms as they are shown: each `max(a - b, 0)` with what it is added to."""
        if not any(_is_max(a) for monomial, _ in self.terms for a in monomial):
            return self.terms
        rest = dict(self.terms)
        shown: dict[Monomial, Shown] = {}
        # Those taken away first: of two clamps the first belongs to the second.
        for monomial, _ in sorted(self.terms, key=lambda term: term[1] > 0):
            place = next((i for i, a in enumerate(monomial) if _is_max(a)), None)
            if place is not None and rest[monomial]:
                shown[monomial] = _extreme(monomial, place, rest)
        return tuple(
            shown.get(monomial, (monomial, rest[monomial]))
            for monomial, _ in self.terms
            if monomial in shown or rest[monomial]
        )

    @property
    def constant(self) -> int | None:
        """The value, if the dim is a plain integer."""
        match self.terms:
            case ():
                return 0
            case (((), value),):
                return value
            case _:
                return None

    @property
    def single(self) -> DimAtom | None:
        """The atom, if the dim is one atom alone."""
        match self.terms:
            case (((atom,), 1),):
                return atom
            case _:
                return None

    @property
    def name(self) -> str | None:
        """The name, if the dim is one named size alone."""
        atom = self.single
        return atom.name if isinstance(atom, DimVar) else None

    def atoms(self) -> Iterator[DimVar | DimHole]:
        """Return the names and holes in the dim, in order, repeats included."""
        pending: list[Dim] = [self]
        while pending:
            for monomial, _ in pending.pop().terms:
                for atom in monomial:
                    if isinstance(atom, DimOp):
                        pending += (atom.left, atom.right)
                    else:
                        yield atom

    def names(self) -> frozenset[str]:
        """Return the names of the sizes in the dim."""
        return frozenset(atom.name for atom in self.atoms() if isinstance(atom, DimVar))

    def has_holes(self) -> bool:
        """Return whether inference still has something to find here."""
        if self._open is None:
            self._open = any(isinstance(atom, DimHole) for atom in self.atoms())
        return self._open

    def substitute(self, find: Callable[[DimVar | DimHole], Dim | None]) -> Dim:
        """Return the dim with each name or hole replaced by what `find` gives, if it gives one."""
        if not any(find(atom) is not None for atom in self.atoms()):
            return self
        total = ZERO
        for monomial, coefficient in self.terms:
            term = Dim.of(coefficient)
            for atom in monomial:
                term = term * _substitute_atom(atom, find)
            total = total + term
        return total

    def rename(self, mapping: Mapping[str, Dim]) -> Dim:
        """Return the dim with named sizes replaced."""
        return self.substitute(
            lambda atom: mapping.get(atom.name) if isinstance(atom, DimVar) else None
        )

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """Return the integer for known sizes. Raises KeyError for a name that is not known."""
        return self.value(lambda dim: None if dim.name is None else sizes[dim.name])

    def value(self, known: Callable[[Dim], int | None]) -> int:
        """Return the integer, where `known` gives what is known of a whole dim, this one or one
        that it is made of, and None for one to be computed. Raises KeyError for a name that is not
        known."""
        found = known(self)
        if found is not None:
            return found
        total = 0
        for monomial, coefficient in self.terms:
            for atom in monomial:
                coefficient *= _value_of_atom(atom, known)
            total += coefficient
        return total

    def __add__(self, other: Dim | int) -> Dim:
        other = Dim.of(other)
        if not self.terms or not other.terms:
            return self if not other.terms else other
        counts = dict(self.terms)
        for monomial, coefficient in other.terms:
            counts[monomial] = counts.get(monomial, 0) + coefficient
        return _normal(counts)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return Dim(tuple((monomial, -coefficient) for monomial, coefficient in self.terms))

    def __sub__(self, other: Dim | int) -> Dim:
        return self + -Dim.of(other)

    def __rsub__(self, other: int) -> Dim:
        return Dim.of(other) - self

    def __mul__(self, other: Dim | int) -> Dim:
        other = Dim.of(other)
        if self == ONE or other == ONE:
            return other if self == ONE else self
        counts: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                monomial = tuple(sorted((*left, *right), key=_atom_key))
                counts[monomial] = counts.get(monomial, 0) + a * b
        return _normal(counts)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim | int) -> Dim:
        other = Dim.of(other)
        exact = self.exact_quotient(other)
        if exact is not None:
            return exact
        a, b = self.constant, other.constant
        if a is not None and b:
            return Dim.of(a // b)
        if b is not None and b > 0:
            whole = Dim(tuple((m, c // b * b) for m, c in self.terms if c // b))
            rest = self - whole
            if whole.terms and rest.terms:
                quotient = whole.exact_quotient(other)
                assert quotient is not None
                return quotient + rest // other
        return Dim.atom(DimOp("floordiv", self, other))

    def __rfloordiv__(self, other: int) -> Dim:
        return Dim.of(other) // self

    def __mod__(self, other: Dim | int) -> Dim:
        other = Dim.of(other)
        if self.exact_quotient(other) is not None:
            return ZERO
        a, b = self.constant, other.constant
        if a is not None and b:
            return Dim.of(a % b)
        if b is not None and b > 0:
            reduced = _normal({m: c % b for m, c in self.terms})
            if reduced != self:
                return reduced % other
        return Dim.atom(DimOp("mod", self, other))

    def __rmod__(self, other: int) -> Dim:
        return Dim.of(other) % self

    def at_least(self, other: Dim | int) -> Dim:
        """Return the larger of two dims: in annotations, `(N - 1).at_least(0)`."""
        from .bounds import maximum  # which is about dims

        return maximum(self, Dim.of(other))

    def at_most(self, other: Dim | int) -> Dim:
        """Return the smaller of two dims: in annotations, `N.at_most(10)`."""
        from .bounds import minimum

        return minimum(self, Dim.of(other))

    def exact_quotient(self, divisor: Dim) -> Dim | None:
        """Return `self / divisor` if the division of polynomials leaves nothing, else None."""
        if not divisor.terms:
            return None
        if divisor == ONE:
            return self
        if divisor == self:
            return ONE
        lead, factor = divisor.terms[0]
        quotient, rest = ZERO, self
        while rest.terms:
            found = _divide_leading(rest, lead, factor)
            if found is None:
                return None
            quotient = quotient + found
            rest = rest - found * divisor
        return quotient

    def exact_root(self, power: int) -> Dim | None:
        """Return the dim whose power this is, if it is one: of `N*N + 2*N + 1`, `N + 1`."""
        if not self.terms:
            return self
        root = _root_of_term(self.terms[0], power)
        if root is None:
            return None
        slope = product((Dim.of(power), *(root,) * (power - 1)))
        while rest := (self - product((root,) * power)).terms:
            found = _divide_leading(Dim(rest), *slope.terms[0])
            if found is None:
                return None
            root = root + found
        return root


ZERO: Final = Dim(())
ONE: Final = Dim((((), 1),))


def sum_of(dims: Iterable[Dim]) -> Dim:
    """Return the sum of dims, 0 for none."""
    return sum(dims, ZERO)


@lru_cache(maxsize=4096)
def product(dims: tuple[Dim, ...]) -> Dim:
    """Return the product of all dims; 1 for none."""
    total = ONE
    for dim in dims:
        total = total * dim
    return total


def _normal(counts: Mapping[Monomial, int]) -> Dim:
    terms = [(m, c) for m, c in counts.items() if c]
    terms.sort(key=_term_key)
    return Dim(tuple(terms))


def _term_key(term: tuple[Monomial, int]) -> tuple[int, tuple[str, ...]]:
    # Degree first, then atoms in order: a multiplicative order, which division relies on.
    monomial, _ = term
    return (-len(monomial), tuple(atom.key for atom in monomial))


def _atom_key(atom: DimAtom) -> str:
    return atom.key


def _bracket(dim: Dim) -> str:
    plain = dim.constant is not None or isinstance(dim.single, DimVar | DimHole)
    return str(dim) if plain else f"({dim})"


def _factor(atom: DimAtom | Extreme, *, alone: bool) -> str:
    if isinstance(atom, Extreme):
        return f"{atom.kind}({atom.left}, {atom.right})"
    return f"({atom.key})" if isinstance(atom, DimOp) and not alone else atom.key


def _is_max(atom: DimAtom) -> bool:
    return isinstance(atom, DimOp) and atom.kind == "max"


def _extreme(monomial: Monomial, place: int, rest: dict[Monomial, int]) -> Shown:
    """Return a term with a `max(a - b, 0)` as a max or min of `a` and `b`, with what belongs to it
    taken out of the other terms, or as it stands: `b + max(a - b, 0)` is `max(a, b)`,
    `a - max(a - b, 0)` is `min(a, b)`, and `max(a, 0) - max(a - 4, 0)` is `min(max(a, 0), 4)`."""
    atom, coefficient = monomial[place], rest[monomial]
    assert isinstance(atom, DimOp)
    rest[monomial] = 0
    others = (*monomial[:place], *monomial[place + 1 :])
    more = Dim(tuple((m, c) for m, c in atom.left.terms if c > 0))
    less = more - atom.left
    if coefficient > 0:
        if _take(-atom.left, others, coefficient, rest):
            return (*others, Extreme("max", -atom.left, ZERO)), coefficient
        if _take(less, others, coefficient, rest):
            return (*others, Extreme("max", more, less)), coefficient
        return (*others, Extreme("max", atom.left, ZERO)), coefficient
    for larger in [a for m in rest if rest[m] > 0 for a in m if isinstance(a, DimOp)]:
        step = (larger.left - atom.left).constant if _is_max(larger) else None
        if step and step > 0 and _take(Dim.atom(larger), others, -coefficient, rest):
            return (*others, Extreme("min", Dim.atom(larger), Dim.of(step))), -coefficient
    if _take(more, others, -coefficient, rest):
        return (*others, Extreme("min", more, less)), -coefficient
    return (*others, Extreme("max", atom.left, ZERO)), coefficient


def _take(wanted: Dim, others: Monomial, coefficient: int, rest: dict[Monomial, int]) -> bool:
    """Take `coefficient * others * wanted` out of terms, if all of it is there."""
    terms = (wanted * Dim(((others, coefficient),))).terms
    if any(rest.get(m, 0) * c <= 0 or abs(rest[m]) < abs(c) for m, c in terms):
        return False
    for monomial, part in terms:
        rest[monomial] -= part
    return True


def _divide_leading(rest: Dim, lead: Monomial, factor: int) -> Dim | None:
    """Return the term by which `rest` must be divided first, or None if no term of it divides."""
    monomial, coefficient = rest.terms[0]
    if coefficient % factor:
        return None
    remaining = list(monomial)
    for atom in lead:
        if atom not in remaining:
            return None
        remaining.remove(atom)
    return Dim(((tuple(remaining), coefficient // factor),))


def _root_of_term(term: tuple[Monomial, int], power: int) -> Dim | None:
    monomial, coefficient = term
    root = round(abs(coefficient) ** (1 / power))
    atoms = monomial[::power]
    if root**power != coefficient or any(monomial.count(a) % power for a in atoms):
        return None
    return Dim(((atoms, root),))


def _substitute_atom(atom: DimAtom, find: Callable[[DimVar | DimHole], Dim | None]) -> Dim:
    if not isinstance(atom, DimOp):
        found = find(atom)
        return Dim.atom(atom) if found is None else found
    from .bounds import positive_part  # needs Dim; the cycle exists only at call time

    left, right = atom.left.substitute(find), atom.right.substitute(find)
    match atom.kind:
        case "floordiv":
            return left // right
        case "mod":
            return left % right
        case _:
            return positive_part(left)


def _value_of_atom(atom: DimAtom, known: Callable[[Dim], int | None]) -> int:
    found = known(Dim.atom(atom))
    if found is not None:
        return found
    if not isinstance(atom, DimOp):
        raise KeyError(atom.key)
    left, right = atom.left.value(known), atom.right.value(known)
    match atom.kind:
        case "floordiv":
            return left // right
        case "mod":
            return left % right
        case _:
            return max(left, right)
