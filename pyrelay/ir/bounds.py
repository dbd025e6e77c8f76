"""Facts about a dim that hold when every named size is at least zero; the larger and the smaller of
two dims, simplified by it; a dim as a number, for comparisons of costs.

The answer "no" means "not provable here", never "false".
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Final

from .dims import ZERO, Dim, DimOp, Monomial

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

_MOST_WAYS: Final = 16
"""An atom may have two lower bounds; more ways than this to choose among them are not tried."""


ASSUMED_SIZE: Final = 64
"""The assumed value of a size that only the run knows, for comparisons of costs."""


def estimate(dim: Dim) -> int:
    """Return a dim as a number: each name in it is taken for `ASSUMED_SIZE`."""
    return dim.evaluate(dict.fromkeys(dim.names(), ASSUMED_SIZE))


def is_nonnegative(dim: Dim) -> bool:
    """Return whether the dim is provably at least 0."""
    if all(c > 0 and not any(isinstance(a, DimOp) for a in m) for m, c in dim.terms):
        return True
    if dim.constant is not None:
        return False
    from fractions import Fraction  # with decimal, too much for `import pyrelay`

    ways: list[_Bound] = [_Bound({}, [(m, Fraction(c)) for m, c in dim.terms])]
    tried = 0
    while ways and tried < _MOST_WAYS:
        tried += 1
        if ways.pop().holds(ways):
            return True
    return False


class _Bound:
    """A lower bound in the making: the bound so far, and the terms that are left to bound."""

    __slots__ = ("found", "pending")

    def __init__(
        self, found: dict[Monomial, Fraction], pending: list[tuple[Monomial, Fraction]]
    ) -> None:
        self.found: Final = found
        self.pending: Final = pending

    def holds(self, ways: list[_Bound]) -> bool:
        """Return whether the bound is at least 0; other ways to bound go to `ways`."""
        while self.pending:
            monomial, factor = self.pending.pop()
            derived = [atom for atom in monomial if isinstance(atom, DimOp)]
            if not derived:
                self.found[monomial] = self.found.get(monomial, 0) + factor
                continue
            terms = self._below(derived[0], factor, ways) if len(monomial) == 1 else None
            if terms is not None:
                self.pending.extend(terms)
            elif factor < 0 or not all(map(_is_nonnegative_atom, derived)):
                return False
        return all(factor >= 0 for factor in self.found.values())

    def _below(
        self, atom: DimOp, factor: Fraction, ways: list[_Bound]
    ) -> list[tuple[Monomial, Fraction]] | None:
        """Return terms whose sum is at most `factor * atom`, if there are linear ones."""
        divisor = atom.right.constant
        match atom.kind:
            case "max" if factor > 0:
                # At least 0, and at least what it clamps.
                return self._either([], _scaled(atom.left, factor), ways)
            case "max":
                most = Dim(tuple((m, c) for m, c in atom.left.terms if c > 0))
                inner = most, most - atom.left
                return _scaled(most, factor) if all(map(is_nonnegative, inner)) else None
            case _ if divisor is None or divisor <= 0:
                return None
            case "floordiv" if factor < 0:
                return _scaled(atom.left, factor / divisor)
            case "floordiv":
                # At least (a - (b - 1)) / b, and at least 0 where a is.
                near = _scaled(atom.left - (divisor - 1), factor / divisor)
                return self._either(near, [], ways) if is_nonnegative(atom.left) else near
            case _:
                return _scaled(Dim.of(divisor - 1), factor) if factor < 0 else []

    def _either(
        self,
        bound: list[tuple[Monomial, Fraction]],
        other: list[tuple[Monomial, Fraction]],
        ways: list[_Bound],
    ) -> list[tuple[Monomial, Fraction]]:
        """Go on with one of two bounds, and leave the other as another way."""
        ways.append(_Bound(dict(self.found), [*self.pending, *other]))
        return bound


def _scaled(dim: Dim, factor: Fraction) -> list[tuple[Monomial, Fraction]]:
    return [(m, c * factor) for m, c in dim.terms]


def _is_nonnegative_atom(atom: DimOp) -> bool:
    match atom.kind:
        case "max":
            return True
        case "floordiv":
            return is_nonnegative(atom.left) and is_nonnegative(atom.right)
        case _:
            return is_nonnegative(atom.right)


def at_most(left: Dim, right: Dim) -> bool:
    """Return whether `left <= right` is provable."""
    return is_nonnegative(right - left)


def maximum(left: Dim, right: Dim) -> Dim:
    """Return the larger of two dims, simplified where the order is provable."""
    return right + positive_part(left - right)


def minimum(left: Dim, right: Dim) -> Dim:
    """Return the smaller of two dims, simplified where the order is provable."""
    return left - positive_part(left - right)


def relation(left: Dim, right: Dim) -> tuple[Dim, str, Dim]:
    """Return the plainest relation that `left == right` states: `max(n - 5, 0) == n - 5` is `n >=
    5`, and `2*(n // 2) == n` is `n % 2 == 0`."""
    for whole, clamped in ((left, right), (right, left)):
        if whole != clamped and positive_part(whole) == clamped:
            more = Dim(tuple((m, c) for m, c in whole.terms if c > 0))
            return more, ">=", more - whole
    for whole, rounded in ((left, right), (right, left)):
        divisor = _rounded_to(whole, rounded)
        if divisor is not None:
            return whole % divisor, "==", ZERO
    return left, "==", right


def _rounded_to(whole: Dim, rounded: Dim) -> Dim | None:
    """Return the divisor `d` of `whole // d * d`, if a dim is that of another."""
    for monomial, coefficient in rounded.terms:
        for atom in monomial:
            if isinstance(atom, DimOp) and (atom.kind, atom.left) == ("floordiv", whole):
                others = list(monomial)
                others.remove(atom)
                is_all = len(rounded.terms) == 1
                return (
                    atom.right
                    if is_all and Dim(((tuple(others), coefficient),)) == atom.right
                    else None
                )
    return None


def positive_part(dim: Dim) -> Dim:
    """Return `max(dim, 0)` in normal form: nested clamps are one, common factors stand in front,
    and the first coefficient inside is positive, for `max(-d, 0)` is `max(d, 0) - d`."""
    if is_nonnegative(dim):
        return dim
    if is_nonnegative(-dim):
        return ZERO
    for clamp, coefficient in _clamps(dim):
        rest = dim - Dim.atom(clamp) * coefficient
        # Of a clamp less something, max(max(e, 0) - r, 0), the inner clamp says nothing.
        if coefficient == 1 and is_nonnegative(-rest):
            return positive_part(clamp.left + rest)
        # max(max(e, 0) + r, 0) is max(r, 0) where e + r is at most 0.
        if coefficient == 1 and is_nonnegative(-(clamp.left + rest)):
            return positive_part(rest)
        # max(r - max(e, 0), 0) is max(r, 0) - max(e, 0) where e is at most r.
        if coefficient == -1 and at_most(clamp.left, rest):
            return positive_part(rest) - Dim.atom(clamp)
    factor = gcd(*(c for _, c in dim.terms))
    if factor > 1:
        return factor * positive_part(Dim(tuple((m, c // factor) for m, c in dim.terms)))
    if dim.terms[0][1] < 0:
        return dim + positive_part(-dim)
    return Dim.atom(DimOp("max", dim, ZERO))


def _clamps(dim: Dim) -> Iterable[tuple[DimOp, int]]:
    for monomial, coefficient in dim.terms:
        match monomial:
            case (DimOp("max") as atom,):
                yield atom, coefficient
            case _:
                pass
