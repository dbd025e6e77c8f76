"""Calls of operators as Python: operators where Python has them, else `relay.name(...)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..ir.dims import Dim
from ..ir.expr import Call
from ..ir.op import HiddenKind, Missing, Op, Role
from ..ir.types import UNIT, DType, TupleType
from ..operators.host.sizes import size
from ..operators.host.stream import next_element
from ..operators.host.text import contains_text
from ..operators.host.whole import same_values
from ..operators.primitive.index import index
from ..operators.primitive.rows import stack_rows
from ..text.attributes import written
from ..translate.subset.tables import BINARY, COMPARISON, UNARY
from . import syntax
from .file import File
from .imports import is_own

_BINARY: Final = {op: kind for kind, op in BINARY.items()}
_COMPARISON: Final = {op: kind for kind, op in COMPARISON.items()}
_UNARY: Final = {op: kind for kind, op in UNARY.items()}


def operator(
    file: File, call: Call, operands: Sequence[ast.expr], sizes: Mapping[str, ast.expr]
) -> ast.expr:
    """Return the call of an operator with its operands as Python; `sizes` are those found while the
    program runs."""
    op = call.callee
    assert isinstance(op, Op)
    if op is size and call.attrs["dim"].name is not None:
        return attribute(file, call.attrs["dim"], sizes)
    if op is same_values:
        return syntax.call(syntax.attribute(file.use("relay"), "equal"), operands, {})
    if op in _BINARY:
        return ast.BinOp(operands[0], _BINARY[op](), operands[1])
    if op in _COMPARISON:
        return ast.Compare(operands[0], [_COMPARISON[op]()], [operands[1]])
    if op is contains_text:
        return ast.Compare(operands[0], [ast.In()], [operands[1]])
    if op in _UNARY and not isinstance(operands[0], ast.Constant):
        return ast.UnaryOp(_UNARY[op](), operands[0])
    if op is index and isinstance(operands[1], ast.Tuple):
        return _subscript(file, call, operands[0], operands[1].elts, sizes)
    return _named(file, op, call, operands, sizes)


def _named(
    file: File, op: Op, call: Call, operands: Sequence[ast.expr], sizes: Mapping[str, ast.expr]
) -> ast.expr:
    given = dict(
        zip((p.name for p in op.operands), zip(operands, call.args, strict=True), strict=True)
    )
    args: list[ast.expr] = []
    keywords: dict[str, ast.expr] = {}
    hidden = {h.name for h in op.hidden if h.holder is HiddenKind.KEY}
    by_position = True
    for p in op.params:
        is_operand = p.role is not Role.ATTRIBUTE
        by_position = by_position and is_operand and p.name not in hidden
        if not is_operand:
            continue
        value, node = given[p.name]
        if node.ty == UNIT and p.default is not Missing.REQUIRED:
            by_position = False
            continue
        by_position = by_position and not isinstance(node.ty, TupleType)
        if by_position:
            args.append(value)
        else:
            keywords[p.name] = value
    if op is next_element:
        keywords["element"] = file.described(call.attrs["element"])
        return syntax.call(syntax.attribute(file.use("relay"), op.name), args, keywords)
    for name, value in written(op, call.attrs).items():
        keywords[name] = attribute(file, value, sizes)
    if is_own(op):
        return syntax.call(file.operator(op), args, keywords)
    name = "stack" if op is stack_rows else op.name  # what `stack` of a list means
    return syntax.call(syntax.attribute(file.use("relay"), name), args, keywords)


def attribute(file: File, value: Any, sizes: Mapping[str, ast.expr]) -> ast.expr:
    """Return a static argument."""
    match value:
        case None | bool() | str():
            return ast.Constant(value)
        case int() | float():
            return file.number(value)
        case tuple():
            return syntax.tuple_of([attribute(file, v, sizes) for v in value])
        case Dim():
            return file.static_dim(value, sizes)
        case DType():
            return file.dtype(value)
        case _:
            raise AssertionError("static arguments are numbers, words, sizes and dtypes")


def _subscript(
    file: File,
    call: Call,
    base: ast.expr,
    indices: Sequence[ast.expr],
    sizes: Mapping[str, ast.expr],
) -> ast.expr:
    parts: list[ast.expr] = []
    for entry in call.attrs["spec"]:
        match entry:
            case ("int", place):
                parts.append(indices[place])
            case ("slice", *bounds):
                found = [None if b is None else attribute(file, b, sizes) for b in bounds]
                parts.append(ast.Slice(*found))
            case ("new",):
                parts.append(ast.Constant(None))
            case _:
                parts.append(ast.Constant(...))
    inside = parts[0] if len(parts) == 1 else syntax.tuple_of(parts)
    return syntax.item(base, inside)
