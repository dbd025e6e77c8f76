"""Work that inference leaves to the running program: sizes to compare, and expressions that stand
where only their size is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...analysis.dim_availability import needed, shown, uncovered
from ...analysis.solved_sizes import solvable
from ...ir.dims import Dim
from ...ir.expr import Atom, Binding, Call, Clause, Expr, Function, If, LetBlock, Match, Var
from ...ir.op import Effect, Op
from ...ir.traverse import Steps, children, let, pattern_vars, post_order, rebuild, run, spine
from ...ir.types import UNIT, Type, dim_names
from ...operators.host.sizes import equal_sizes

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ..solver import Solver


def calls_in_branches(functions: Iterable[Function]) -> set[Expr]:
    """Return the calls that run only where a branch is taken."""
    found: set[Expr] = set()
    pending: list[tuple[Expr, bool]] = [(f.body, False) for f in functions]
    while pending:
        node, is_inside = pending.pop()
        if is_inside and isinstance(node, Call):
            found.add(node)
        # The first child of a branch is what decides it.
        is_branch = isinstance(node, If | Match)
        pending += ((c, is_inside or (is_branch and i > 0)) for i, c in enumerate(children(node)))
    return found


def comparisons(sizes: Iterable[tuple[Dim, Dim]], span: Span) -> list[Binding]:
    """Return bindings that stop the program where sizes differ."""
    found: list[Binding] = []
    for left, right in sizes:
        attrs = {"left": left, "right": right}
        call = Call(equal_sizes, (), attrs, ty=UNIT, span=span)
        found.append(Binding(Var("same", UNIT, span=span), call))
    return found


def after_value(value: Expr, compared: Sequence[Binding]) -> Expr:
    """Return an expression with sizes compared once it has its value."""
    if not compared:
        return value
    var = Var("value", value.ty, span=compared[0].var.span)
    return let((Binding(var, value), *compared), var)


def after_operands(call: Call, compared: Sequence[Binding]) -> Expr:
    """Return a call with sizes compared once its operands are there."""
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


def without_undetermined(function: Function) -> Function:
    """Return a typed function without comparisons of sizes that no value before them shows, such as
    a size that is only in the type of a function."""
    calls = (n for n in post_order(function) if isinstance(n, Call))
    if not any(call.callee is equal_sizes for call in calls):
        return function
    determined = run(_checked(function, frozenset()))
    assert isinstance(determined, Function)
    return determined


def _checked(expr: Expr, known: frozenset[Dim]) -> Steps[Expr]:
    """Return an expression without such comparisons where values show the known sizes."""
    match expr:
        case Function(params, body):
            inner = yield _checked(body, known.union(*(shown(p.ty) for p in params)))
            return expr if inner is body else replace(expr, body=inner)
        case LetBlock():
            return (yield from _checked_block(expr, known))
        case Match(value, clauses):
            changed = yield _checked(value, known)
            made: list[Clause] = []
            for clause in clauses:
                found = known.union(*(shown(v.ty) for v in pattern_vars(clause.pattern)))
                guard = clause.guard
                if guard is not None:
                    guard = yield _checked(guard, found)
                made.append(replace(clause, guard=guard, body=(yield _checked(clause.body, found))))
            return replace(expr, value=changed, clauses=tuple(made))
        case _:
            inside: list[Expr] = []
            for child in children(expr):
                determined = child if isinstance(child, Atom) else (yield _checked(child, known))
                inside.append(determined)
            return rebuild(expr, inside)


def _checked_block(block: LetBlock, known: frozenset[Dim]) -> Steps[Expr]:
    blocks, end = spine(block)
    kept: list[tuple[LetBlock, list[Binding]]] = []
    for each in blocks:
        kept.append((each, []))
        for binding in each.bindings:
            value = yield _checked(binding.value, known)
            if not _is_undetermined(value, known):
                kept[-1][1].append(replace(binding, value=value))
            known = known.union(shown(binding.var.ty))
    result: Expr = yield _checked(end, known)
    for each, bindings in reversed(kept):
        result = replace(each, bindings=tuple(bindings), body=result) if bindings else result
    return result


def _is_undetermined(value: Expr, known: frozenset[Dim]) -> bool:
    if not isinstance(value, Call) or value.callee is not equal_sizes:
        return False
    names = {u.name for d in needed(value) for u in uncovered(d, known) if u.name is not None}
    return not solvable(names, known)


def must_run(size: Expr, types: Mapping[Expr, Type], solver: Solver) -> bool:
    """Return whether an expression must be evaluated although its type determines its value: it may
    have an effect, or nothing else shows the value."""
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
