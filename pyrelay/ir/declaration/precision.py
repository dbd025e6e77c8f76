"""The precision of operators under `autocast`."""

from __future__ import annotations

from enum import Enum

from .lowering import Contraction, Lowering, View


class Precision(Enum):
    """The dtype in which an operator computes under `autocast`."""

    GIVEN = "given"
    """That of its operands, as elsewhere: reductions, losses, norms, transcendental functions."""
    NARROW = "narrow"
    """The narrow one; torch and kernels add up the products in float32."""
    ANY = "any"
    """The narrow one where the operands have it: the operator moves, selects or negates elements,
    so the result is exact in every dtype."""
    OF_LOWERING = "of its lowering"
    """Stands in a declaration for what the kind of lowering implies."""


def precision_of(lowering: Lowering) -> Precision:
    """Return the precision that a kind of lowering implies."""
    match lowering:
        case Contraction():
            return Precision.NARROW
        case View():
            return Precision.ANY
        case _:
            return Precision.GIVEN
