"""How long a place of a loop takes, for the choice between one thread and many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...kernels.plans.terms import Term, Terms
from .block import INFIX

_FREE: Final = ("const", "size", "value", "result")
_LOAD: Final = 2
_FUNCTION: Final = 10


def cost_of(terms: Terms, roots: Iterable[Term]) -> int:
    """Return about how many additions it takes to compute some terms."""
    return sum(map(_cost, terms.needed(roots)))


def cost_along(terms: Terms, roots: Iterable[Term], coordinates: Iterable[str]) -> int:
    """Return about how many additions it takes to compute those of some terms that are others at
    each place of the loops with these coordinates; the rest is computed before them."""
    names = frozenset(coordinates)
    varying: set[Term] = set()
    for term in sorted(terms.needed(roots), key=lambda t: t.number):
        own = (name for dim in terms.dims(term) for name in dim.names())
        if not varying.isdisjoint(terms.before(term)) or not names.isdisjoint(own):
            varying.add(term)
    return sum(map(_cost, varying))


def _cost(term: Term) -> int:
    if term.op in _FREE:
        return 0
    if term.op == "load":
        return _LOAD
    return 1 if term.op in INFIX else _FUNCTION
