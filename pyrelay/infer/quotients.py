"""Equations between dims that a division solves: `2*?1 == n`, `?1*k == n`."""

from __future__ import annotations

from string import ascii_lowercase
from typing import final

from ..dataclass import dataclass
from ..ir.dims import ONE, ZERO, Dim, DimHole, DimOp, DimVar
from ..ir.op import Clash


@final
@dataclass(frozen=True, slots=True)
class Quotient:
    """A hole, to the power of `power`, as a quotient of two dims without holes."""

    hole: DimHole
    dividend: Dim
    divisor: Dim
    power: int

    def exact(self) -> Dim | None:
        """Return the hole's dim, if division and root leave nothing."""
        quotient = self.dividend.exact_quotient(self.divisor)
        return None if quotient is None else quotient.exact_root(self.power)


def quotient_in(difference: Dim) -> Quotient | None:
    """Return the one hole in a dim that is 0 as a quotient, if only one power of it occurs."""
    holes = {a for a in difference.atoms() if isinstance(a, DimHole)}
    if len(holes) != 1:
        return None
    (hole,) = holes
    powers = {monomial.count(hole) for monomial, _ in difference.terms} - {0}
    if len(powers) != 1:
        return None
    divisor, dividend = ZERO, ZERO
    for monomial, coefficient in difference.terms:
        if hole not in monomial:
            dividend = dividend - Dim(((monomial, coefficient),))
            continue
        others = tuple(a for a in monomial if a != hole)
        divisor = divisor + Dim(((others, coefficient),))
    if divisor.has_holes() or dividend.has_holes() or not divisor.terms:
        return None
    if divisor.terms[0][1] < 0:
        divisor, dividend = -divisor, -dividend
    return Quotient(hole, dividend, divisor, powers.pop())


def choice_in(difference: Dim) -> tuple[Dim, Dim] | None:
    """Return an equation that is enough for a dim to be 0, where several sizes make it 0.

    Of a product of two holes one may be 1, and `?1 // k` is `n` if `?1` is `k*n`. Whoever needs the
    value of such a hole is refused, so that any choice is right.
    """
    for monomial, coefficient in difference.terms:
        holes = [a for a in monomial if Dim.atom(a).has_holes()]
        if len(holes) > 1 and isinstance(holes[0], DimHole) and holes[0] not in holes[1:]:
            return Dim.atom(holes[0]), ONE
        rest = difference - Dim(((monomial, coefficient),))
        if len(monomial) != 1 or coefficient not in (1, -1) or rest.has_holes():
            continue
        match monomial[0]:
            case DimOp("floordiv", left, right):
                return left, rest * -coefficient * right
            case DimOp("max", left):
                return left, rest * -coefficient
            case _:
                pass
    return None


def refuse_remainder(difference: Dim) -> None:
    """Stop where no size makes a dim 0. Raises Clash."""
    found = quotient_in(difference)
    if found is None or found.dividend.constant is None or found.divisor.constant is None:
        return
    if found.dividend.constant % found.divisor.constant:
        raise Clash(f"{found.dividend} is no multiple of {found.divisor}")
    if found.exact() is None:
        quotient = found.dividend // found.divisor
        raise Clash(f"no size to the power of {found.power} is {quotient}")


def equation_text(difference: Dim) -> str:
    """Return the equation that a zero dim states: the part with holes, named, equals the rest."""
    names: dict[int, Dim] = {}
    free = (n for n in ascii_lowercase if n not in difference.names())

    def named(atom: DimVar | DimHole) -> Dim | None:
        if isinstance(atom, DimVar):
            return None
        if atom.number not in names:
            names[atom.number] = Dim.of(next(free, "size"))
        return names[atom.number]

    open_ = Dim(tuple(t for t in difference.terms if Dim((t,)).has_holes()))
    rest = open_ - difference
    if open_.terms[0][1] < 0:
        open_, rest = -open_, -rest
    return f"`{open_.substitute(named)} == {rest}`"


def is_never_zero(dim: Dim) -> bool:
    """Return whether a polynomial in sizes is zero only when sizes vanish: all signs agree."""
    signs = {coefficient > 0 for _, coefficient in dim.terms}
    return len(signs) == 1
