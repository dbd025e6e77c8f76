"""Calls of function values, and of what transforms make of functions."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ...diagnostics.catalogue.language import Unsupported
from ...ir.constant import placeholder
from ...ir.expr import Call, Expr
from ...ir.intrinsics import Intrinsic
from ...ir.traverse import Steps
from ..calls.arguments import bind_arguments, in_order
from ..calls.functions import local_call
from ..calls.transformed import Taken, taken_by
from ..calls.user_rules import applied_rules
from ..models.gradients import RULES, made_by, operands
from ..names.static import called_meaning
from ..program.context import Context
from ..program.environment import Bound


def function_call(cx: Context, node: ast.Call, entry: Bound | None) -> Steps[Expr]:
    """Translate a call of a function value, or of what a transform makes; `entry` is that of the
    callee's name."""
    ruled = applied_rules(cx, node)
    if ruled is not None:
        return (yield ruled)
    local = None if entry is None else entry.function
    made = (
        None
        if local is None or all(k.arg not in local.statics for k in node.keywords)
        else local.made
    )
    if made is not None:  # the transform is made for these static arguments
        again = ast.copy_location(ast.Call(made, node.args, node.keywords), node)
        return (yield function_call(cx, again, None))
    taken = taken_by(cx, node.func)
    if taken is not None and node.keywords:
        return (yield _named_call(cx, node, taken))
    callee = yield _callee(cx, node, node.args)
    if entry is not None and entry.function is not None:
        return (yield local_call(cx, node, callee, entry.function))
    if node.keywords:
        instead = "pass arguments by position: the names of its parameters are not known"
        cx.program.report(
            Unsupported(
                cx.span(node.keywords[0]), "a keyword argument of a function value", instead
            )
        )
    args = yield operands(cx, _differentiated(cx, node.func) or node.func, node.args)
    rest = () if taken is None or _is_map(cx, node) else taken.names[len(node.args) :]
    defaults = taken.defaults if taken is not None and taken.defaults.keys() >= {*rest} else {}
    left_out = (defaults[name] for name in rest if name in defaults)
    return Call(callee, (*args, *left_out), span=cx.span(node))


def _named_call(cx: Context, node: ast.Call, taken: Taken) -> Steps[Expr]:
    """Translate a call with arguments by name of what a transform makes."""
    bound = bind_arguments(cx, node, taken.callee(node.func))
    if bound is None:
        return placeholder(cx.span(node))
    given = [bound.get(name) for name in taken.names]
    statics = {name: bound[name] for name in taken.statics if name in bound}
    callee = yield _callee(cx, node, given, statics)
    function = _differentiated(cx, node.func) or node.func
    written: dict[str, Expr] = {}
    for name, argument in bound.items():
        if name in taken.names:
            place = taken.names.index(name)
            before = range(place)
            (value,) = yield operands(cx, function, [argument] * (place + 1), before)
            written[name] = value
    defaults = {} if _is_map(cx, node) else taken.defaults

    def call(args: Mapping[str, Expr]) -> Expr:
        values = {**defaults, **args}
        return Call(
            callee, tuple(values[n] for n in taken.names if n in values), span=cx.span(node)
        )

    return in_order(written, taken.names, call)


def _is_map(cx: Context, node: ast.Call) -> bool:
    """Return whether a call is of what `relay.vmap(f)` makes, which takes no defaults of `f`."""
    return called_meaning(cx, node.func) is Intrinsic.VMAP


def _differentiated(cx: Context, node: ast.expr) -> ast.expr | None:
    """Return the function that a transform such as `relay.grad(f)` takes; None for any other
    call."""
    intrinsic = called_meaning(cx, node)
    if not isinstance(node, ast.Call) or intrinsic not in RULES or not node.args:
        return None
    return node.args[0]


def _callee(
    cx: Context,
    node: ast.Call,
    given: Sequence[ast.expr | None],
    statics: Mapping[str, ast.expr] = MappingProxyType({}),
) -> Steps[Expr]:
    """Translate the callee; a transform of a function sees the arguments, too."""
    made = node.func
    steps = made_by(cx, made, given, statics)
    return (yield cx.expression(made) if steps is None else steps)
