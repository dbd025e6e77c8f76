"""What inference leaves to the running program: sizes to compare, and expressions that stand where
only their size is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir.dims import Dim
from ...ir.expr import Atom, Binding, Call, Expr, Var
from ...ir.op import Effect, Op
from ...ir.ops.host import equal_sizes
from ...ir.traverse import let, post_order
from ...ir.types import UNIT, Type, dim_names

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from .solver import Solver


def comparisons(sizes: Iterable[tuple[Dim, Dim]], span: Span) -> list[Binding]:
    """Give bindings that stop the program where sizes differ."""
    found: list[Binding] = []
    for left, right in sizes:
        attrs = {"left": left, "right": right}
        call = Call(equal_sizes, (), attrs, ty=UNIT, span=span)
        found.append(Binding(Var("same", UNIT, span=span), call))
    return found


def after_value(value: Expr, compared: Sequence[Binding]) -> Expr:
    """Give an expression with sizes compared once it has its value."""
    if not compared:
        return value
    var = Var("value", value.ty, span=compared[0].var.span)
    return let((Binding(var, value), *compared), var)


def after_operands(call: Call, compared: Sequence[Binding]) -> Expr:
    """Give a call with sizes compared once its operands are there."""
    if not compared:
        return call
    bindings: list[Binding] = []
    args: list[Expr] = []
    for arg in call.args:
        if isinstance(arg, Atom):
            args.append(arg)
            continue
        var = Var("value", arg.ty, span=arg.span)
        bindings.append(Binding(var, arg))
        args.append(var)
    return let((*bindings, *compared), replace(call, args=tuple(args)))


def must_run(size: Expr, types: Mapping[Expr, Type], solver: Solver) -> bool:
    """Tell whether an expression must be evaluated although its type tells its value: it may do
    something, or nothing else shows the value."""
    shown: frozenset[str] = frozenset()
    for node in post_order(size):
        match node:
            case Var():
                shown |= dim_names(solver.resolve(types[node]))
            case Call(Op(effect=Effect.NONE)):
                pass
            case Call():
                return True
            case _:
                pass
    names = dim_names(solver.resolve(types[size])) - shown
    return any(map(solver.is_existential, names))
