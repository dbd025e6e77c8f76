"""What is certain about a dim when every named size is at least zero.

The type rules of slices ask this, to leave out a clamp that can never act. The answer "no" means
"not provable here", never "false".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .dims import Dim, DimOp, Monomial, maximum

if TYPE_CHECKING:
    from fractions import Fraction


def is_nonnegative(dim: Dim) -> bool:
    """Tell whether the dim is provably at least 0."""
    from fractions import Fraction  # with decimal, too much for `import pyrelay`

    lower: dict[Monomial, Fraction] = {}
    pending: list[tuple[Monomial, Fraction]] = [(m, Fraction(c)) for m, c in dim.terms]
    while pending:
        monomial, factor = pending.pop()
        derived = [atom for atom in monomial if isinstance(atom, DimOp)]
        if not derived:
            lower[monomial] = lower.get(monomial, Fraction(0)) + factor
        elif len(monomial) == 1 and _is_linear(derived[0]):
            pending += _linear_bound(derived[0], factor)
        elif factor < 0 or not all(_is_nonnegative_atom(atom) for atom in derived):
            return False
    return all(factor >= 0 for factor in lower.values())


def at_most(left: Dim, right: Dim) -> bool:
    """Tell whether `left <= right` is provable."""
    return is_nonnegative(right - left)


def minimum(left: Dim, right: Dim) -> Dim:
    """Give the smaller of two dims, simplified where the order is provable."""
    if at_most(left, right):
        return left
    if at_most(right, left):
        return right
    return left + right - maximum(left, right)


def _is_nonnegative_atom(atom: DimOp) -> bool:
    match atom.kind:
        case "max":
            return is_nonnegative(atom.left) or is_nonnegative(atom.right)
        case "floordiv":
            return is_nonnegative(atom.left) and is_nonnegative(atom.right)
        case _:
            return is_nonnegative(atom.right)


def _is_linear(atom: DimOp) -> bool:
    """Tell whether the atom lies between two linear combinations of simpler dims."""
    if atom.kind == "max":
        return is_nonnegative(atom.left) and is_nonnegative(atom.right)
    divisor = atom.right.constant
    return divisor is not None and divisor > 0


def _linear_bound(atom: DimOp, factor: Fraction) -> Iterator[tuple[Monomial, Fraction]]:
    """Give terms whose sum is at most `factor * atom`."""
    divisor = atom.right.constant
    match atom.kind:
        case "floordiv":
            assert divisor is not None
            yield from ((m, c * factor / divisor) for m, c in atom.left.terms)
            if factor > 0:  # a // b >= (a - (b - 1)) / b
                yield (), -factor * (divisor - 1) / divisor
        case "mod":
            assert divisor is not None
            if factor < 0:
                yield (), factor * (divisor - 1)
        case _:
            # max(a, b) >= either; of two sizes, max(a, b) <= a + b.
            sides = (atom.left, atom.right) if factor < 0 else (_larger_bound(atom),)
            yield from ((m, c * factor) for side in sides for m, c in side.terms)


def _larger_bound(atom: DimOp) -> Dim:
    return atom.right if atom.right.constant is not None else atom.left
