"""Values brought to other types where tensors with sizes of their own meet tensors.

A tensor is taken out of a value with sizes of its own; a list of tensors becomes one of such
values, and so does a function of tensors. The step is written in the language itself and typed
with the program. A tensor alone is put into such a value by `conversions.converted`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from ..ir.dims import Dim
from ..ir.expr import Atom, Call, Constructor, Expr, Function, GlobalVar, Var
from ..ir.own_sizes import has_own_sizes, opened
from ..ir.traverse import Steps, run
from ..ir.types import AdtType, FnType, TensorType, Type, TypeHole, names_own_sizes
from ..prelude.library import LIST, qualified
from .operators import Reading
from .solver import Solver

Adapt: TypeAlias = Callable[[Expr, Type, Type], "tuple[Reading, Type] | None"]
"""Brings a value of a type to another where that takes a step of its own, and types the step."""


def adapting(
    adts: Iterable[str],
    solver: Solver,
    variables: MutableMapping[Var, Type],
    walk: Callable[[Expr], Steps[Type]],
) -> Adapt | None:
    """Return the adapter of values, in a program with tensors that have sizes of their own.

    `variables` gets the types of those that it makes; `walk` types an expression.
    """
    has_own = any(map(names_own_sizes, adts))
    return partial(_adapt, solver, variables, walk) if has_own else None


def _adapt(
    solver: Solver,
    variables: MutableMapping[Var, Type],
    walk: Callable[[Expr], Steps[Type]],
    value: Expr,
    actual: Type,
    wanted: Type,
) -> tuple[Reading, Type] | None:
    name = value.name if isinstance(value, Var) else "value"
    operand = value if isinstance(value, GlobalVar) else Var(name, span=value.span)
    body = adapted(operand, actual, wanted, solver)
    if body is None:
        return None
    operands: dict[Var, Expr] = {}
    if isinstance(operand, Var):
        operands, variables[operand] = {operand: value}, actual
    settling, solver.settling = solver.settling, False
    found = solver.shallow(run(walk(body)))
    solver.settling = settling
    return Reading(operands, body), found


def arriving(
    adapt: Adapt | None,
    made: MutableMapping[Function | Var, Reading],
    key: Function | Var,
    value: Expr,
) -> Callable[[Type, Type], Type] | None:
    """Return the adapter of the result of a function, or of the value of an annotated name; `made`
    gets the step."""
    if adapt is None:
        return None

    def arrived(actual: Type, wanted: Type) -> Type:
        found = adapt(value, actual, wanted)
        if found is None:
            return actual
        made[key], actual = found
        return actual

    return arrived


def adapted(value: Atom, actual: Type, wanted: Type, solver: Solver) -> Expr | None:
    """Return a value at another type, not typed yet; None where it needs no such step."""
    actual, wanted = solver.shallow(actual), solver.shallow(wanted)
    match actual, wanted:
        case AdtType(), TensorType() if has_own_sizes(actual):
            tensor = Var(value.name if isinstance(value, Var) else "tensor", span=value.span)
            return opened(value, tensor, actual, tensor)
        case FnType(takes, gives), FnType(given, result) if len(takes) == len(given):
            pairs = [*zip(given, takes, strict=True), (gives, result)]
            differs = any(_differs(*pair, solver) for pair in pairs)
            return _function(value, given, result, solver) if differs else None
        case AdtType(name, (element,)), AdtType(other, (own,)) if name == other == LIST:
            assert not isinstance(element, Dim)
            assert not isinstance(own, Dim)
            return _list(value, own, solver) if _differs(element, own, solver) else None
        case _:
            return None


def must_wait(actual: Type, wanted: Type, solver: Solver) -> bool:
    """Return whether a value of unknown type may turn out to be one that a tensor is taken out
    of."""
    actual, wanted = solver.shallow(actual), solver.shallow(wanted)
    return isinstance(actual, TypeHole) and isinstance(wanted, TensorType) and not solver.settling


def may_get_own(call: Call, actual: Type, wanted: Type, solver: Solver) -> bool:
    """Return whether a list that gets a tensor may turn out to be one of tensors with sizes of
    their own. In a display the last element settles it: sizes are compared where all are known."""
    actual, wanted = solver.shallow(actual), solver.shallow(wanted)
    if not _is_cons(call) or not isinstance(wanted, TypeHole):
        return False
    waits = not solver.settling or _is_cons(call.args[1])
    return waits and isinstance(actual, TensorType) and actual.rank > 0


def _is_cons(expr: Expr) -> bool:
    callee = expr.callee if isinstance(expr, Call) else None
    return isinstance(callee, Constructor) and (callee.adt, callee.name) == (LIST, "Cons")


def _differs(one: Type, other: Type, solver: Solver) -> bool:
    one, other = solver.shallow(one), solver.shallow(other)
    pair = {has_own_sizes(one), has_own_sizes(other)}
    return len(pair) > 1 and any(isinstance(ty, TensorType) for ty in (one, other))


def _function(value: Atom, takes: tuple[Type, ...], gives: Type, solver: Solver) -> Expr:
    params = tuple(Var("x", _if_own(ty, solver), span=value.span) for ty in takes)
    # A function of any sizes is another instance in each call.
    callee = replace(value) if isinstance(value, GlobalVar) else value
    body = Call(callee, params, span=value.span)
    return Function(params, body, _if_own(gives, solver), span=value.span)


def _list(value: Atom, element: Type, solver: Solver) -> Expr:
    param = Var("x", span=value.span)
    put_in = Function((param,), param, _if_own(element, solver), span=value.span)
    return Call(GlobalVar(qualified("map"), span=value.span), (put_in, value), span=value.span)


def _if_own(ty: Type, solver: Solver) -> Type | None:
    ty = solver.resolve(ty)
    return ty if has_own_sizes(ty) else None
