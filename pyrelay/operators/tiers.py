"""The tiers of operators: primitives, and composites, which are bodies in other operators.

A transform or a backend needs a rule for each primitive. Its needs of a composite follow from the
body. The primitives of one element are apart: each is a method of `Scalars`, and one rule of a
transform serves them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ..ir.declaration.lowering import MadeOf, inside
from ..ir.op import Effect, Expansion, Host, Op, Pointwise
from .composite.einsum import contract
from .composite.model import initial
from .host.conversions import to_bool, to_float, to_int
from .primitive import activation, collect, rows
from .primitive.formulas import SCALARS, formula

if TYPE_CHECKING:
    from .builder import Value

Body: TypeAlias = "Callable[[tuple[Value, ...], Mapping[str, Any]], Value | None]"


class Tier(Enum):
    """The tier of an operator, as transforms and backends see it."""

    SCALAR = "scalar primitive"
    PRIMITIVE = "primitive"
    COMPOSITE = "composite"
    HOST = "host"
    """Works on values of the host, or for its effect: nothing is transformed or compiled."""


_ON_HOST = frozenset(
    (collect.collect, rows.stack_rows, rows.unstack, initial, to_bool, to_float, to_int)
)
_SCALAR = frozenset((*SCALARS.values(), activation.stop_gradient))


def tier(op: Op) -> Tier:
    """Return the tier of an operator."""
    if isinstance(op.lowering, Host) or op.effect & (Effect.IO | Effect.STATE) or op in _ON_HOST:
        return Tier.HOST
    if op in _SCALAR:
        return Tier.SCALAR
    return Tier.PRIMITIVE if body_of(op) is None else Tier.COMPOSITE


def body_of(op: Op) -> Body | None:
    """Return the body of a composite, as passes call it; None for a primitive."""
    if op is contract:
        return None  # its derivative is that of einsum, which is made of it
    made = op.body or inside(op.lowering)
    if isinstance(made, MadeOf):
        return made.body
    if isinstance(op.grad, Expansion):
        return op.grad.body
    if isinstance(op.lowering, Pointwise) and op not in _SCALAR:
        return partial(formula, op.lowering.body)
    return None
