"""Masks: one bit per leaf, for every variable of a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....ir.expr import Expr, Var, type_of
from ....ir.op import NoGradient, Op

if TYPE_CHECKING:
    from ..leaves import Leaves

Masks = dict[Var, int]


def join_masks(leaves: Leaves, atoms: Sequence[Expr], masks: Masks) -> int:
    """Return the masks of atoms as one, the first atom's leaves lowest."""
    total, shift = 0, 0
    for atom in atoms:
        if isinstance(atom, Var):
            total |= masks.get(atom, 0) << shift
        shift += leaves.width(type_of(atom))
    return total


def is_constant(op: Op) -> bool:
    """Return whether the derivative of an operator is stated to be zero."""
    return isinstance(op.grad, NoGradient) and op.grad.is_zero


def bits(mask: int) -> list[int]:
    """Return the positions of the bits that are set, in order."""
    found: list[int] = []
    index = 0
    while mask:
        if mask & 1:
            found.append(index)
        mask >>= 1
        index += 1
    return found


def ones(width: int) -> int:
    """Return the mask of all leaves."""
    return (1 << width) - 1
