"""How long a place of a loop takes, for the choices between one thread and many, and between one
vector at a time and several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...kernels.plans.terms import Term, Terms
from ..math import bounds
from .block import INFIX

_FUNCTIONS: Final = frozenset(bounds("fast"))
"""Operations that are polynomials: a processor has to wait for one step after another."""

_FREE: Final = ("const", "size", "value", "result")
_LOAD: Final = 2
_FUNCTION: Final = 10


def cost_of(terms: Terms, roots: Iterable[Term]) -> int:
    """Return about how many additions it takes to compute some terms."""
    return sum(map(_cost, terms.needed(roots)))


def cost_along(terms: Terms, roots: Iterable[Term], coordinates: Iterable[str]) -> int:
    """Return about how many additions it takes to compute those of some terms that are others at
    each place of the loops with these coordinates; the rest is computed before them."""
    return sum(map(_cost, terms.varying(roots, frozenset(coordinates))))


_MOST: Final = 540
"""Vectors are computed together as long as they cost so many additions: C grows with them."""

LONG: Final = 256
"""Loops with lines that cost so many additions look for each vector how many lanes it has: C for
whole vectors, and again for what is left of them, takes long to build."""

_FEW: Final = 2
"""With more functions that wait for each other, more vectors are computed together."""


def vectors_at_once(terms: Terms, roots: Sequence[Term], least: int = 1) -> int:
    """Return how many vectors a line of a loop stands for: several where functions, or `least` of
    sums, make the processor wait for results; 1 where places are computed, which takes several
    statements."""
    needed = terms.needed(roots)
    if any(t.op == "checked" or _is_computed(terms, t) for t in needed):
        return 1
    if least == 1 and not any(map(is_function, needed)):
        return 1
    cost, functions = cost_of(terms, roots), sum(map(is_function, needed))
    counts = (8, 4, 2) if functions > _FEW else (4, 2)
    return next((count for count in counts if count * cost <= _MOST), 1)


def is_function(term: Term) -> bool:
    """Return whether a term takes so long that it is better read than computed again."""
    return term.op in _FUNCTIONS


def _is_computed(terms: Terms, term: Term) -> bool:
    """Return whether a term is at places that are values, or loaded only where it exists."""
    is_masked = term.op == "load" and bool(term.operands)
    return is_masked or any(list(terms.found(dim)) for dim in terms.dims(term))


def _cost(term: Term) -> int:
    if term.op in _FREE:
        return 0
    if term.op == "load":
        return _LOAD
    return 1 if term.op in INFIX else _FUNCTION
