"""Python syntax nodes without places: `ast.unparse` gives them as text."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..ir.dims import Dim, DimAtom, DimHole, DimOp, DimVar, Extreme

LOAD: Final = ast.Load()
STORE: Final = ast.Store()


def name(text: str) -> ast.Name:
    """Return the value of a name."""
    return ast.Name(text, LOAD)


def attribute(owner: ast.expr, text: str) -> ast.Attribute:
    """Return `owner.text`."""
    return ast.Attribute(owner, text, LOAD)


def item(value: ast.expr, index: ast.expr) -> ast.Subscript:
    """Return `value[index]`."""
    return ast.Subscript(value, index, LOAD)


def tuple_of(fields: Sequence[ast.expr]) -> ast.Tuple:
    """Return `(field, ...)`."""
    return ast.Tuple(list(fields), LOAD)


def call(
    function: ast.expr, args: Sequence[ast.expr], keywords: Mapping[str, ast.expr] | None = None
) -> ast.Call:
    """Return `function(*args, **keywords)`."""
    named = [ast.keyword(n, v) for n, v in (keywords or {}).items()]
    return ast.Call(function, list(args), named)


def assign(target: str, value: ast.expr) -> ast.Assign:
    """Return `target = value`."""
    return ast.Assign([ast.Name(target, STORE)], value, lineno=0)


def number(value: float) -> ast.expr:
    """Return a number; those that Python has no literal for are `math`'s."""
    if value != value:
        return attribute(name("math"), "nan")
    if value in (float("inf"), float("-inf")):
        infinite = attribute(name("math"), "inf")
        return infinite if value > 0 else ast.UnaryOp(ast.USub(), infinite)
    if not isinstance(value, bool) and (value < 0 or repr(value).startswith("-")):
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def parameters(names: Sequence[str], annotations: Sequence[ast.expr | None]) -> ast.arguments:
    """Return the parameters of a `def`."""
    args = [ast.arg(n, a) for n, a in zip(names, annotations, strict=True)]
    return ast.arguments([], args, None, [], [], None, [])


def definition(
    title: str,
    args: ast.arguments,
    body: list[ast.stmt],
    result: ast.expr | None,
    decorators: Sequence[ast.expr] = (),
) -> ast.FunctionDef:
    """Return a `def`."""
    given: dict[str, Any] = {"lineno": 0}
    if "type_params" in ast.FunctionDef._fields:  # Python 3.12 and later
        given["type_params"] = []
    return ast.FunctionDef(title, args, body, list(decorators), result, **given)


def dim(value: Dim, names: Mapping[str, ast.expr], *, runs: bool) -> ast.expr:
    """Return a dim as arithmetic on names: in an annotation on dims, or as what a program computes
    when it `runs`."""
    total: ast.expr | None = None
    for factors, coefficient in value.presented():
        parts = [_factor(f, names, runs=runs) for f in factors]
        if abs(coefficient) != 1 or not parts:
            parts.insert(0, ast.Constant(abs(coefficient)))
        term = parts[0]
        for part in parts[1:]:
            term = ast.BinOp(term, ast.Mult(), part)
        if total is None:
            total = term if coefficient > 0 else ast.UnaryOp(ast.USub(), term)
        else:
            total = ast.BinOp(total, ast.Add() if coefficient > 0 else ast.Sub(), term)
    return ast.Constant(0) if total is None else total


def _factor(factor: DimAtom | Extreme, names: Mapping[str, ast.expr], *, runs: bool) -> ast.expr:
    match factor:
        case DimVar(name=hint):
            return names[hint]
        case DimOp(kind=kind) if kind in _DIM_OPERATORS:
            sides = (dim(d, names, runs=runs) for d in (factor.left, factor.right))
            left, right = sides
            return ast.BinOp(left, _DIM_OPERATORS[kind], right)
        case Extreme(kind, left, right) | DimOp(kind, left, right):
            if left.constant is not None:
                left, right = right, left
            args = [dim(d, names, runs=runs) for d in (left, right)]
            if runs:
                return call(name(kind), args)
            return call(attribute(args[0], _EXTREMES[kind]), args[1:])
        case DimHole():
            raise AssertionError("a checked program has no open sizes")


_DIM_OPERATORS: Final[dict[str, ast.operator]] = {"floordiv": ast.FloorDiv(), "mod": ast.Mod()}
_EXTREMES: Final = {"max": "at_least", "min": "at_most"}


def class_of(
    title: str, bases: Sequence[ast.expr], body: list[ast.stmt], decorators: Sequence[ast.expr]
) -> ast.ClassDef:
    """Return a class."""
    given: dict[str, Any] = {}
    if "type_params" in ast.ClassDef._fields:  # Python 3.12 and later
        given["type_params"] = []
    return ast.ClassDef(title, list(bases), [], body, list(decorators), **given)
