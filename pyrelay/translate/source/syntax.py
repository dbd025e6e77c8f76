"""Shapes of Python's syntax trees that many constructs ask for."""

from __future__ import annotations

import ast


def is_none(node: ast.expr | None) -> bool:
    """Return whether an expression is the literal `None`."""
    return isinstance(node, ast.Constant) and node.value is None


def elements_of(node: ast.expr) -> list[ast.expr]:
    """Return the elements of a tuple or list that is written out; any other expression is one."""
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call, those by keyword too, in the order they are written."""
    return [*call.args, *(k.value for k in call.keywords)]


def keyword_argument(call: ast.Call, name: str) -> ast.expr | None:
    """Return the argument of a call by a keyword; None where it is not passed."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def parameter_nodes(args: ast.arguments) -> list[ast.arg]:
    """Return the parameters of a function but for `*args` and `**kwargs`."""
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]
