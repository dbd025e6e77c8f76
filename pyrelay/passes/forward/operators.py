"""The tangent of one operator call.

An operator states its forward rule (`Op.push`), or one follows from the derivative that it has: of
a pointwise operator the pullback is diagonal, so it maps tangents as it maps cotangents; of any
other operator it is transposed. Composites are differentiated through their bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...diagnostics.catalogue.gradient import NoDerivative
from ...ir.expr import Call, Expr
from ...ir.op import Expansion, Gradient, Linear, NoGradient, Op, Pointwise, Pullback, Pushforward
from ...ir.types import UNIT
from ...operators.builder import Builder, Value

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from .transposed import Transposed


def push_operator(
    transposed: Transposed,
    report: Callable[[Problem], None],
    call: Call,
    out: Value,
    args: tuple[Value, ...],
    given: Sequence[Sequence[Expr | None]],
) -> list[Expr | None]:
    """Return the tangents of the leaves of a call's result, `given` those of its operands; None
    for zero."""
    op, builder = call.callee, out.builder
    assert isinstance(op, Op)
    width = transposed.width(out.ty)
    if not width or all(t is None for own in given for t in own):
        return [None] * width
    match op.grad:
        case NoGradient(why, is_zero):
            if not is_zero:
                report(NoDerivative(call.span, op.name, why))
            return [None] * width
        case Expansion():
            raise AssertionError("expansions have been read in place of the operator")
        case rule:
            pass
    if op.push is None and not isinstance(op.lowering, Pointwise):
        return transposed.tangents(op, rule, out, args, given, call.attrs)
    tangents = tuple(transposed.assembled(a, own) for a, own in zip(args, given, strict=True))
    push = Pushforward(tangents, out, args, call.attrs)
    match op.push:
        case Linear() as linear:
            made = _linear(builder, op, linear, push)
        case None:
            made = _diagonal(rule, push)
        case own:
            made = own(push)
    return list(transposed.leaves_of(builder, made, out.ty))


def _diagonal(rule: Gradient, push: Pushforward) -> Value | None:
    """Return the tangent of an operator of one element at a time: the sum over the operands of what
    the pullback makes of each tangent."""
    total: Value | None = None
    for index, tangent in enumerate(push.tangents):
        if tangent is None:
            continue
        wanted = tuple(i == index for i in range(len(push.args)))
        part = rule(Pullback(tangent, push.out, push.args, push.attrs, wanted))[index]
        if part is not None:
            part = part.cast(push.out.dtype)
            total = part if total is None else total + part
    return None if total is None else total.expand(push.out.shape)


def _linear(builder: Builder, op: Op, linear: Linear, push: Pushforward) -> Value | None:
    """Return the tangent of an operator that is linear in groups of operands: the sum over the
    groups of the operator with the tangents of one of them."""
    total: Value | None = None
    names = [p.name for p in op.operands]
    for group in linear.groups:
        moved = {names.index(name) for name in group}
        if all(push.tangents[i] is None for i in moved):
            continue
        operands = [
            _in_group(builder, arg, tangent) if i in moved else arg
            for i, (arg, tangent) in enumerate(zip(push.args, push.tangents, strict=True))
        ]
        if linear.added is not None and linear.added not in group:
            operands[names.index(linear.added)] = builder.unit()
        part = builder.call(op, operands, push.attrs)
        total = part if total is None else total + part
    return total


def _in_group(builder: Builder, arg: Value, tangent: Value | None) -> Value:
    """Return the operand's replacement where the tangents of its group are passed."""
    if tangent is not None:
        return tangent
    return arg if arg.ty == UNIT else builder.zeros(arg.ty)
