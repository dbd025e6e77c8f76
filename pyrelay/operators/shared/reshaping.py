"""The type rule of `reshape`: an equation between two products of dims.

One unknown on either side is solved for. Where the two products are polynomials of which neither
divides the other, their equality becomes an assumption; where one divides the other, the factor
that is missing or too much is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...ir.dims import ONE, Dim, DimHole, product
from ...ir.op import RuleCall, Stuck
from ...ir.types import TensorType, Type, show

INFER: Final = Dim.of(-1)
"""In a shape: the size that follows from the others, or stays as it is."""


def shape_text(shape: Sequence[Dim]) -> str:
    """Return a shape as Python writes a tuple."""
    inside = ", ".join(str(d) for d in shape)
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def first_hole(dim: Dim) -> Dim | None:
    """Return the first part of a dim that inference has not found yet."""
    return next((Dim.atom(a) for a in dim.atoms() if isinstance(a, DimHole)), None)


def _reshape_clash(call: RuleCall, source: TensorType, total: Dim, wanted: Dim) -> None:
    """Stop if one number of elements is a multiple of the other, or both are known."""
    target: tuple[Dim, ...] = call.attrs["shape"]
    missing, extra = total.exact_quotient(wanted), wanted.exact_quotient(total)
    message = f"`reshape` cannot make shape {shape_text(target)} of {show(source)}"
    if missing is not None and missing != ONE:
        call.clash(
            f"{message}: {total} elements against {wanted}, the factor {missing} is missing",
            0,
            help=f"keep it as a dim: reshape(x, {shape_text((missing, *target))})",
        )
    if extra is not None and extra != ONE:
        call.clash(
            f"{message}: {total} elements against {wanted}, the factor {extra} is too much", 0
        )
    if (total - wanted).constant not in (None, 0):
        call.clash(f"{message}: {total} elements against {wanted}", 0)


def _solve_one_hole(call: RuleCall, shape: Sequence[Dim], wanted: Dim) -> Dim:
    """Let shapes flow backwards: a single unknown dim of the operand follows from the product."""
    holes = [d for d in shape if isinstance(d.single, DimHole)]
    known = product(tuple(d for d in shape if not isinstance(d.single, DimHole)))
    if len(holes) == 1 and not known.has_holes() and not wanted.has_holes():
        quotient = wanted.exact_quotient(known)
        if quotient is not None:
            call.solver.unify_dims(holes[0], quotient)
            return wanted
    return known * product(tuple(holes))


def _inferred_size(call: RuleCall, source: TensorType, total: Dim, rest: Dim) -> Dim:
    hole = first_hole(total) or first_hole(rest)
    if hole is not None:
        raise Stuck(hole)
    quotient = total.exact_quotient(rest)
    if quotient is not None:
        return quotient
    message = (
        f"`reshape` cannot make shape {shape_text(call.attrs['shape'])} of {show(source)}: "
        f"{total} elements are not a multiple of {rest}"
    )
    if rest.constant == 0 or (total.constant is not None and rest.constant is not None):
        call.clash(message, 0)
    quotient = total // rest
    call.unify_dims(total, quotient * rest, 0, message)
    return quotient


def reshape_type(call: RuleCall) -> Type:
    """Return the type after `reshape`. Raises Stuck or Clash."""
    source = call.tensor(0)
    shape = tuple(call.solver.resolve_dim(d) for d in source.shape)
    target = tuple(call.solver.resolve_dim(d) for d in call.attrs["shape"])
    total = product(shape)
    if target.count(INFER) > 1:
        call.clash(
            f"`reshape` can infer one size, not {target.count(INFER)}: {shape_text(target)}", 0
        )
    if INFER in target:
        rest = product(tuple(d for d in target if d != INFER))
        inferred = _inferred_size(call, source, total, rest)
        return TensorType(tuple(inferred if d == INFER else d for d in target), source.dtype)
    wanted = product(target)
    if total.has_holes():
        total = _solve_one_hole(call, shape, wanted)
    _reshape_clash(call, source, total, wanted)
    call.unify_dims(
        total,
        wanted,
        0,
        f"`reshape` cannot make shape {shape_text(target)} of {show(source)}: "
        f"{total} elements against {wanted}",
    )
    return TensorType(target, source.dtype)
