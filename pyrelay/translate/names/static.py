"""Values known before the program runs: literals, captured constants, static parameters.

They are what attributes of operators, counts of layers and conditions on hyper-parameters are made
of. Plain numbers, bools, strings and tuples are computed with here, as Python would.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Final

from ...diagnostics.source import Span
from ...ir.intrinsics import Intrinsic
from ...ir.traverse import Steps, run
from ...operators.captured import CAPTURED
from ...prelude.names import library_value
from ..program.context import Context
from ..program.environment import Bound, Static
from ..source.definition import Definition, meaning
from ..source.optimizers import Maker, OptimizerUse, Recipe
from ..source.scope import MISSING, is_data, is_frozen_field, is_known, is_plain
from ..source.syntax import arguments_of


def static_value(cx: Context, node: ast.expr, *, local: bool = True) -> Static | None:
    """Return the value of an expression that is known now, else None; reports nothing.

    With `local` False the local names that merely hold known values are not looked through, so
    the answer is the same everywhere in a function.
    """
    return run(_value(cx, node, local))


def static_meaning(cx: Context, node: ast.expr | None) -> Any:
    """Return the meaning of the value of an expression to the compiler; None where it is unknown,
    or means nothing."""
    known = None if node is None else static_value(cx, node)
    return None if known is None else meaning(known.value)


def called_meaning(cx: Context, node: ast.AST) -> Any:
    """Return the meaning of the callee of a call to the compiler; None for other nodes."""
    return static_meaning(cx, node.func) if isinstance(node, ast.Call) else None


def static_test(cx: Context) -> Callable[[ast.expr], bool | None]:
    """Return the test that says which way a condition goes, if that is known before running."""

    def test(node: ast.expr) -> bool | None:
        found = static_value(cx, node, local=False)
        return None if found is None or not is_plain(found.value) else bool(found.value)

    return test


def _value(cx: Context, node: ast.expr, local: bool) -> Steps[Static | None]:
    """Return the value of an expression; each part of a long chain is looked at once."""
    if (node, local) not in cx.known.at(cx.env.version):
        found = yield _found(cx, node, local)
        cx.known.at(cx.env.version)[node, local] = found
        return found
    return cx.known.at(cx.env.version)[node, local]


def _found(cx: Context, node: ast.expr, local: bool) -> Steps[Static | None]:
    match node:
        case ast.Constant(value=value):
            return Static(value)
        case ast.Name(id=name):
            return _name(cx, name, local)
        case ast.Attribute(value=owner, attr=name):
            return _attribute(cx, (yield _value(cx, owner, local)), name)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return _computed(lambda *v: v, (yield _values(cx, elts, local)), plain=False)
        case ast.BoolOp(op=op, values=values):
            return (yield _logical(cx, values, stop=isinstance(op, ast.Or), local=local))
        case ast.IfExp(test=test, body=then, orelse=otherwise):
            known = yield _value(cx, test, local)
            if known is None or not is_plain(known.value):
                return None
            return (yield _value(cx, then if known.value else otherwise, local))
        case ast.Call():
            return (yield _call(cx, node, local))
        case ast.JoinedStr() | ast.FormattedValue():
            return (yield _string(cx, node, local))
        case _:
            return (yield _operation(cx, node, local))


def _joined(*parts: Any) -> str:
    return "".join(str(p) for p in parts)


def _string(
    cx: Context, node: ast.JoinedStr | ast.FormattedValue, local: bool
) -> Steps[Static | None]:
    """Return the text of an f-string, or of a place in one."""
    if isinstance(node, ast.JoinedStr):
        return _computed(_joined, (yield _values(cx, node.values, local)), plain=False)
    parts = [node.value] if node.format_spec is None else [node.value, node.format_spec]
    values = yield _values(cx, parts, local)
    if values is None or not is_known(values[0].value):
        return None
    mark = f"!{CONVERSIONS[node.conversion]}" if CONVERSIONS[node.conversion] else ""
    return _computed(lambda v, spec="": f"{{{mark}:{spec}}}".format(v), values, plain=False)


CONVERSIONS: Final = {-1: "", ord("s"): "s", ord("r"): "r", ord("a"): "a"}
"""The conversions of f-strings, written after `!`, by their numbers in the syntax tree."""


def _call(cx: Context, node: ast.Call, local: bool) -> Steps[Static | None]:
    """Return the value of a call of a Python function that is known, the optimiser it makes, or the
    relay function under a policy."""
    called = yield _value(cx, node.func, local)
    if called is None:
        return None
    maker = meaning(called.value)
    names = [k.arg for k in node.keywords if k.arg is not None]
    if isinstance(maker, Maker):
        given = yield _values(cx, arguments_of(node), local)
        return _computed(partial(_made, maker, cx.span(node), names), given)
    if maker is Intrinsic.AUTOCAST:
        given = yield _values(cx, arguments_of(node), local)
        return _narrowed(called, names, given)
    if node.keywords or not _folds(called.value):
        return None
    return _computed(called.value, (yield _values(cx, node.args, local)))


def _narrowed(called: Static, names: Sequence[str], given: list[Static] | None) -> Static | None:
    """Return the relay function that `relay.autocast` makes of one known by name; a mistake in the
    call is left to its translation."""
    if not given or not isinstance(meaning(given[0].value), Definition):
        return None
    return _computed(partial(_called, called.value, names), given, plain=False)


def _called(function: Callable[..., Any], names: Sequence[str], *values: Any) -> Any:
    """Return the result of a call; the last values are those of keywords."""
    free = len(values) - len(names)
    return function(*values[:free], **dict(zip(names, values[free:], strict=True)))


def _made(maker: Maker, span: Span, names: Sequence[str], *values: Any) -> OptimizerUse:
    """Return the optimiser that a call makes; the last values are those of keywords."""
    recipe = _called(maker.make, names, *values)
    return OptimizerUse(recipe.rule, span, recipe.lr)


def _operation(cx: Context, node: ast.expr, local: bool) -> Steps[Static | None]:
    match node:
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _computed(_UNARY[type(op)], (yield _values(cx, [operand], local)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _computed(_BINARY[type(op)], (yield _values(cx, [left, right], local)))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISON:
            return _compared(_COMPARISON[type(op)], (yield _values(cx, [left, right], local)))
        case ast.Subscript(value=base, slice=place):
            return _computed(operator.getitem, (yield _values(cx, [base, place], local)))
        case _:
            return None


def _values(cx: Context, nodes: Sequence[ast.expr], local: bool) -> Steps[list[Static] | None]:
    found: list[Static] = []
    for node in nodes:
        value = yield _value(cx, node, local)
        if value is None:
            return None
        found.append(value)
    return found


def _name(cx: Context, name: str, local: bool) -> Static | None:
    entry = cx.env.find(name)
    if entry is None:
        value = cx.outside(name)
        is_known = value is not MISSING and not isinstance(value, CAPTURED)
        return Static(value) if is_known else None
    if name in cx.statics or (local and isinstance(entry, Bound)):
        return entry.static if isinstance(entry, Bound) else None
    return None


def _attribute(cx: Context, owner: Static | None, name: str) -> Static | None:
    if owner is None:
        return None
    value = cx.scope.attribute(owner.value, name)
    if value is MISSING or isinstance(value, CAPTURED):
        return None
    holds = isinstance(owner.value, ModuleType | type) or is_data(owner.value)
    kept = holds or is_frozen_field(owner.value, name)
    found = library_value(value) or meaning(value)
    # An object may get another optimiser; what else has a meaning stays what it is.
    lasts = kept or (found is not None and not isinstance(found, Recipe))
    return Static(value, exact=owner.exact and lasts)


def _logical(cx: Context, nodes: Sequence[ast.expr], *, stop: bool, local: bool) -> Steps[Any]:
    last: Static | None = None
    for node in nodes:
        last = yield _value(cx, node, local)
        if last is None or not is_plain(last.value):
            return None
        if bool(last.value) is stop:
            return last
    return last


def _computed(
    compute: Callable[..., Any], values: list[Static] | None, *, plain: bool = True
) -> Static | None:
    if values is None or (plain and not all(is_plain(v.value) for v in values)):
        return None
    try:
        found = compute(*(v.value for v in values))
    except (ArithmeticError, TypeError, ValueError, LookupError):
        return None  # it stays in the program, and fails when it runs
    return Static(found, exact=all(v.exact for v in values))


def _compared(compute: Callable[..., Any], values: list[Static] | None) -> Static | None:
    if values is None or not all(is_data(v.value) for v in values):
        return None
    if compute not in (operator.is_, operator.is_not) and not all(
        is_known(v.value) for v in values
    ):
        return None  # `N == 1` compares the number
    return _computed(compute, values, plain=False)


def _folds(value: object) -> bool:
    return any(value is f for f in _FOLDED) or getattr(value, "__module__", None) == math.__name__


_FOLDED: Final = (abs, bool, float, int, len, max, min, round, str, sum)
_UNARY: Final[dict[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISON: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda value, items: value in items,
    ast.NotIn: lambda value, items: value not in items,
}
