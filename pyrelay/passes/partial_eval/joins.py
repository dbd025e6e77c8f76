"""Branches of the residual program, once their arms are evaluated.

A branch in tail position ends a body. Any other is bound: it returns what its arms give
differently, and the value that the arms give alike is made of that below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.block_builder import BlockBuilder
from ...ir.expr import Call, Expr, Tuple, TupleGet, Var, type_of
from ...ir.traverse import Steps
from ...ir.types import TupleType, Type
from .branches import Arm, Branches, Result, Tail
from .residual import Hole, Joined, Residual
from .values import Value


def closing(residual: Residual, result: Result, ty: Type, code: BlockBuilder) -> Expr:
    """Return the end of a body of a type."""
    return result.expr if isinstance(result, Tail) else residual.fitting(result, ty, code)


def in_tail_position(residual: Residual, found: Branches) -> Tail:
    """Return a branch as the end of a body."""
    bodies = [a.code.close(closing(residual, a.result, found.ty, a.code)) for a in found.arms]
    return Tail(found.make(bodies, found.ty))


def join(residual: Residual, found: Branches, code: BlockBuilder) -> Steps[Value]:
    """Emit a branch; return its value, of which is known what all arms give alike."""
    diverging = [residual.diverges(a.value) for a in found.arms]
    values = [None if d else a.value for a, d in zip(found.arms, diverging, strict=True)]
    holes: list[Hole] = []
    whole: Joined
    if any(v is not None for v in values):
        whole = yield residual.joined(values, found.ty, found.span, holes)
    else:
        whole = Hole(Var("t", found.ty, span=found.span), tuple(values))
        holes.append(whole)
    types = tuple(type_of(h.var) for h in holes)
    ty = types[0] if len(holes) == 1 else TupleType(types)
    bodies: list[Expr] = []
    for number, (arm, call) in enumerate(zip(found.arms, diverging, strict=True)):
        if call is not None:
            end = _failing(residual, arm, call, ty)
        else:
            end = _holes_of(residual, arm, [h.parts[number] for h in holes], ty)
        bodies.append(arm.code.close(end))
    _bind_holes(residual, found.make(bodies, ty), holes, code)
    return (yield residual.rebuilt(whole, code))


def _holes_of(residual: Residual, arm: Arm, parts: Sequence[Value | None], ty: Type) -> Expr:
    """Return the values of an arm for the holes, at the end of its code."""
    types = ty.fields if isinstance(ty, TupleType) and len(parts) != 1 else (ty,)
    found = zip(parts, types, strict=True)
    atoms = tuple(residual.fitting(p, t, arm.code) for p, t in found if p is not None)
    if len(atoms) == 1:
        return atoms[0]
    whole = Tuple(atoms, ty, span=arm.value.atom.span)
    return residual.bind("t", whole, arm.code).atom if atoms else whole


def _failing(residual: Residual, arm: Arm, call: Call, ty: Type) -> Expr:
    """Return the end of an arm that never gives a value, as one of a type."""
    atom = arm.value.atom
    if call.ty == ty:
        return atom
    assert isinstance(atom, Var)
    arm.code.retract(atom)
    return residual.bind(atom.name, replace(call, ty=ty), arm.code).atom


def _bind_holes(
    residual: Residual, branch: Expr, holes: Sequence[Hole], code: BlockBuilder
) -> None:
    """Emit a branch and the variables of the parts that its arms give differently."""
    if len(holes) == 1:
        residual.define(holes[0].var, branch, code)
        return
    both = residual.bind("both", branch, code).atom
    for index, hole in enumerate(holes):
        part = TupleGet(both, index, hole.var.ty, span=branch.span)
        residual.define(hole.var, part, code)


def held_after(found: Branches, before: dict[Expr, Value]) -> dict[Expr, Value]:
    """Return the contents of references after branches, where all arms agree."""
    first, *rest = [arm.facts.cells for arm in found.arms]
    return {
        cell: value
        for cell, value in first.items()
        if cell in before and all(other.get(cell) is value for other in rest)
    }
