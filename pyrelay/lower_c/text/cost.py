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


def _cost(term: Term) -> int:
    if term.op in _FREE:
        return 0
    if term.op == "load":
        return _LOAD
    return 1 if term.op in INFIX else _FUNCTION
