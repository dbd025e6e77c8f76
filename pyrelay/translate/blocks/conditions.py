"""Conditions: which of two continuations runs, and what each then knows of the names tested.

`isinstance(x, Node)` and `x is None` take a value apart where they hold, through `and`, `or` and
`not`; every other condition is a bool. Each continuation is translated once: one that several tests
lead to becomes a local function.
"""

from __future__ import annotations

import ast
import builtins
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import Any, Final, TypeAlias, TypeGuard

from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.source import NOWHERE, Construct, Span
from ...ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    Constant,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Match,
    Var,
    Wildcard,
)
from ...ir.fields import all_have, reading
from ...ir.traverse import Steps
from ...ir.types import BOOL
from ...operators.host.failing import fail
from ...operators.host.loop import truth
from ..data.data import DataConstructor
from ..names.known_parts import entry_of
from ..names.narrowing import (
    bound_as,
    classes_left,
    content_of,
    fields_bound,
    none,
    note,
    note_class,
    note_not,
    of_class,
    only_class,
    some,
    testable,
)
from ..names.static import static_value
from ..program.context import Context, in_turn
from ..program.environment import Bound
from .list_append import grown_value

Continue: TypeAlias = Callable[[], Steps[Expr]]
"""Translates what runs after a test went one way."""


def branch(
    cx: Context, test: ast.expr, then: Continue, otherwise: Continue, span: Span
) -> Steps[Expr]:
    """Translate a conditional. Each continuation sees the names as the test narrows them; the
    facts end with it."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand) if narrows(cx, operand):
            return (yield branch(cx, operand, otherwise, then, span))
        case ast.BoolOp(op=ast.And(), values=values) if narrows(cx, test):
            return (yield _all(cx, values, then, otherwise, span))
        case ast.BoolOp(op=ast.Or(), values=values) if narrows(cx, test):
            return (yield _any(cx, values, then, otherwise, span))
        case ast.Call(args=[value, classes]) if narrows(cx, test):
            return (yield _of_class(cx, value, classes, then, otherwise, span))
        case ast.Compare(left=value, ops=[op]) if narrows(cx, test):
            if isinstance(op, ast.IsNot):
                then, otherwise = otherwise, then
            return (yield _is_none(cx, value, then, otherwise, span))
        case _:
            holds = yield condition(cx, test)
            first = yield inside(cx, then)
            second = yield inside(cx, otherwise)
            return If(holds, first, second, span=span.using(cx.uses))


def condition(cx: Context, node: ast.expr) -> Steps[Expr]:
    """Translate a condition: a bool, a number or a string, or a list, which holds if it has
    elements. `and` and `or` decide here, and make no value of an operand's type."""
    if isinstance(node, ast.BoolOp) and not narrows(cx, node):
        operands = yield in_turn(condition(cx, value) for value in node.values)
        return decided(node, operands, cx.span(node))
    grown = grown_value(cx, node)
    value = (yield cx.expression(node)) if grown is None else grown
    is_bool = isinstance(node, ast.Compare) or _is_not(node)
    is_bool = is_bool or (isinstance(value, Var) and value.ty == BOOL)
    if is_bool or isinstance(value, Constant | If):
        return value
    return Call(truth, (value,), {}, span=cx.span(node))


def decided(node: ast.BoolOp, operands: Sequence[Expr], span: Span) -> Expr:
    """Return `and` or `or` of conditions; an operand that need not be evaluated is not."""
    result = operands[-1]
    for operand in reversed(operands[:-1]):
        if isinstance(node.op, ast.And):
            result = If(operand, result, Constant(False, span=span), span=span)
        else:
            result = If(operand, Constant(True, span=span), result, span=span)
    return result


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def narrows(cx: Context, test: ast.expr) -> bool:
    """Return whether a condition contains a test of a class or of None."""
    pending = [test]
    while pending:
        match pending.pop():
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                pending.append(operand)
            case ast.BoolOp(values=values):
                pending += values
            case ast.Call(func=func, args=[_, _], keywords=[]):
                known = static_value(cx, func)
                if known is not None and known.value is builtins.isinstance:
                    return True
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                return True
            case _:
                pass
    return False


def knowing(cx: Context, guard: ast.expr, walk: Continue, span: Span) -> Steps[Expr]:
    """Translate the code behind a guard, with the names that the guard narrows. Its tests of
    classes and of None are made once more: they have no effects."""
    values = guard.values if _is_all(guard) else [guard]
    known = [v for v in values if _only_narrows(cx, v)]
    if not known:
        return (yield walk())

    def never() -> Steps[Expr]:
        yield from ()
        return Call(fail, (), {"message": _EXCLUDED}, span=span)

    found = walk
    for test in reversed(known):
        found = partial(branch, cx, test, found, never, span)
    return (yield found())


def _is_all(test: ast.expr) -> TypeGuard[ast.BoolOp]:
    return isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)


def _only_narrows(cx: Context, test: ast.expr) -> bool:
    """Return whether a condition is one test of a class or of None, of a name or a part of one."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _only_narrows(cx, operand)
        case ast.Call(args=[value, _]) | ast.Compare(left=value, ops=[_]):
            return narrows(cx, test) and testable(cx, value) is not None
        case _:
            return False


def as_value(cx: Context, test: ast.expr) -> Steps[Expr]:
    """Translate a condition that narrows names, as a bool."""
    span = cx.span(test)
    return (yield branch(cx, test, _bool(span, value=True), _bool(span, value=False), span))


def _bool(span: Span, *, value: bool) -> Continue:
    def give() -> Steps[Expr]:
        yield from ()
        return Constant(value, span=span)

    return give


def inside(cx: Context, walk: Continue) -> Steps[Expr]:
    """Translate a continuation; what it makes of names holds in it alone."""
    mark = cx.env.mark()
    found = yield walk()
    cx.env.undo(mark)
    return found


def _shared(cx: Context, walk: Continue, name: str, span: Span) -> Steps[tuple[Binding, Continue]]:
    """Translate a continuation that several tests lead to as a function; return calls of it."""
    var = Var(name, span=span)
    function = Function((), (yield inside(cx, walk)), name=name, span=span)

    def call() -> Steps[Expr]:
        yield from ()
        return Call(var, (), span=span)

    return Binding(var, function), call


def _all(
    cx: Context, values: Sequence[ast.expr], then: Continue, otherwise: Continue, span: Span
) -> Steps[Expr]:
    binding, leave = yield _shared(cx, otherwise, "otherwise", span)

    def from_(place: int) -> Continue:
        if place == len(values):
            return then
        return lambda: branch(cx, values[place], from_(place + 1), leave, span)

    whole = yield inside(cx, from_(0))
    return LetBlock((binding,), whole, Flavour.REC, span=span)


def _any(
    cx: Context, values: Sequence[ast.expr], then: Continue, otherwise: Continue, span: Span
) -> Steps[Expr]:
    binding, enter = yield _shared(cx, then, "then", span)

    def from_(place: int) -> Continue:
        if place == len(values):
            return otherwise
        return lambda: branch(cx, values[place], enter, from_(place + 1), span)

    whole = yield inside(cx, from_(0))
    return LetBlock((binding,), whole, Flavour.REC, span=span)


# Tests of classes.


def _of_class(
    cx: Context, node: ast.expr, classes: ast.expr, then: Continue, otherwise: Continue, span: Span
) -> Steps[Expr]:
    value = yield cx.expression(node)
    found = class_tested(cx, classes)
    place = cx.span(node)
    clauses: list[Clause] = []
    shared: Binding | None = None
    mark = cx.env.mark()
    if len(found) == 1:
        fields, content = fields_bound(found[0], place), content_of(cx, node)
        note_class(cx, node, found[0], fields, content)
        body = yield inside(cx, then)
        clauses.append(Clause(bound_as(content, of_class(found[0], place, fields)), body))
    elif found:
        shared, made = yield _of_several(cx, node, found, then, span)
        clauses += made
    cx.env.undo(mark)
    note_not(cx, node, found)
    clauses += yield _rest(cx, node, otherwise, found, span)
    cx.env.undo(mark)
    whole = Match(value, tuple(clauses), span=span.using(cx.uses))
    return whole if shared is None else LetBlock((shared,), whole, Flavour.REC, span=span)


def _of_several(
    cx: Context, node: ast.expr, found: Sequence[DataConstructor], then: Continue, span: Span
) -> Steps[tuple[Binding, list[Clause]]]:
    """Translate what runs where a value is of one of several classes, and give a clause for each;
    what was an optional is passed there as its content."""
    place, content = cx.span(node), content_of(cx, node)
    if content is not None:
        entry = testable(cx, node)
        assert entry is not None
        note(cx, node, replace(entry, atom=content, declared=None, narrowed=None))
    note_not(cx, node, [c for c in cx.program.data.members(found[0]) if c not in found])
    params = () if content is None else (content,)
    var = Var("then", span=span)
    shared = Function(params, (yield inside(cx, then)), name="then", span=span)
    clauses: list[Clause] = []
    for each in found:
        passed = tuple(Var(p.name, span=place) for p in params)
        pattern = bound_as(passed[0] if passed else None, of_class(each, place))
        clauses.append(Clause(pattern, Call(var, passed, span=span)))
    return Binding(var, shared), clauses


def _rest(
    cx: Context, node: ast.expr, otherwise: Continue, tested: Sequence[DataConstructor], span: Span
) -> Steps[list[Clause]]:
    """Translate what runs for the classes that are left; if that is one, its fields are known."""
    left = only_class(cx, node)
    if left is None:
        return [Clause(Wildcard(span=NOWHERE), (yield inside(cx, otherwise)))]
    place = cx.span(node)
    fields = fields_bound(left, place)
    note_class(cx, node, left, fields)
    clauses = [Clause(of_class(left, place, fields), (yield inside(cx, otherwise)))]
    return clauses + excluded_before(cx, (*tested, left), span)


def excluded_before(cx: Context, classes: Sequence[DataConstructor], span: Span) -> list[Clause]:
    """Return the clauses for the other classes of a union, which tests before have excluded and no
    value is of."""
    # Written out, so that None of an optional is a missing case.
    return excluded([c for c in cx.program.data.members(classes[0]) if c not in classes], span)


def excluded(classes: Sequence[DataConstructor], span: Span) -> list[Clause]:
    """Return the clauses for classes that tests have excluded."""
    return [
        Clause(of_class(c, NOWHERE), Call(fail, (), {"message": _EXCLUDED}, span=span))
        for c in classes
    ]


_EXCLUDED: Final = "a case that was excluded before"


def class_tested(cx: Context, node: ast.expr) -> list[DataConstructor]:
    """Return the constructors that the second argument of `isinstance` names."""
    known = [static_value(cx, part) for part in _alternatives(node)]
    parts = [[] if each is None else _classes(each.value) for each in known]
    classes = [c for part in parts for c in part]
    if not all(parts):
        what = f"`{ast.unparse(node)}` as the class of a test"
        instead = "name a frozen dataclass, or a tuple of them"
        cx.program.report(Unsupported(cx.span(node), what, instead))
    found = [cx.constructor(c, cx.span(node)) for c in classes]
    return [c for c in found if c is not None]


def _alternatives(node: ast.expr) -> list[ast.expr]:
    """Return the parts of `A | B | C` in order, or the one expression that is something else."""
    found: list[ast.expr] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.BinOp) and isinstance(current.op, ast.BitOr):
            pending += [current.right, current.left]
        else:
            found.append(current)
    return found


def _classes(value: Any) -> list[type]:
    """Return the classes that `isinstance` would test for; nothing where one is no class."""
    found: list[type] = []
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, tuple):
            pending += reversed(current)
        elif isinstance(current, types.UnionType) or typing.get_origin(current) is typing.Union:
            pending += reversed(typing.get_args(current))
        elif isinstance(current, type):
            found.append(current)
        else:
            return []
    return found


def field_left(cx: Context, node: ast.Attribute, value: Expr) -> Expr | None:
    """Return a field of a value that all classes have which tests leave for it; None where they
    exclude no class, or where a class that is left has no such field, or one of another type."""
    left, name, span = classes_left(cx, node.value), node.attr, cx.span(node)
    adt = cx.program.data.adts.get(left[0].adt) if left else None
    known = [] if adt is None else [adt.constructor(c.name) for c in left]
    if adt is None or not all_have(known, name):
        return None
    found = [reading(adt.name, c, name, span) for c in known]
    return Match(value, (*found, *excluded_before(cx, left, span)), span=span.using(cx.uses))


# Tests of None.


def _is_none(
    cx: Context, node: ast.expr, then: Continue, otherwise: Continue, span: Span
) -> Steps[Expr]:
    value = yield cx.expression(node)
    place = cx.span(node)
    name = node.id if isinstance(node, ast.Name) else "content"
    content = Var(name, span=place)
    empty = yield inside(cx, then)
    mark = cx.env.mark()
    entry = testable(cx, node)
    if entry is not None:
        note(cx, node, Bound(atom=content, holder=entry.holder))
    full = yield inside(cx, otherwise)
    cx.env.undo(mark)
    there = some(BindPattern(content, span=place), place)
    return Match(value, (Clause(none(place), empty), Clause(there, full)), span=span.using(cx.uses))


# What is never reached.


def is_assert_never(cx: Context, stmt: ast.stmt) -> bool:
    """Return whether a call statement calls `assert_never`: that of `typing`, or a function of that
    name which says that it takes and gives nothing."""
    if not isinstance(stmt, ast.Expr) or not isinstance(stmt.value, ast.Call):
        return False
    known = static_value(cx, stmt.value.func)
    if known is None or len(stmt.value.args) != 1 or stmt.value.keywords:
        return False
    function = known.value
    if function is typing.assert_never:
        return True
    if not isinstance(function, FunctionType) or function.__name__ != "assert_never":
        return False
    return all(str(a).rsplit(".", 1)[-1] in _NEVER for a in function.__annotations__.values())


_NEVER: Final = ("NoReturn", "Never")


def never(cx: Context, stmt: ast.Expr) -> Steps[Expr]:
    """Translate `assert_never(x)`: a match of the cases that tests have excluded for `x`. One that
    is missing there is one that nothing has taken care of."""
    span = cx.span(stmt)
    if not is_assert_never(cx, stmt):
        what = "a function named `assert_never` that is not that of `typing`"
        return cx.refuse(Unsupported(span, what, "import it: `from typing import assert_never`"))
    assert isinstance(stmt.value, ast.Call)
    node = stmt.value.args[0]
    entry = entry_of(cx, node)
    value = yield cx.expression(node)
    excluded = () if entry is None else entry.excluded
    words = "`assert_never` was reached"
    clauses = tuple(
        Clause(of_class(c, NOWHERE), Call(fail, (), {"message": words}, span=span))
        for c in dict.fromkeys(excluded)
    )
    return Match(value, clauses, span=span.desugared(Construct.NEVER))
