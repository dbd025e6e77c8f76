"""Where in an expression of the user's a name is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .source import Span


def use_of(name: str, within: Span) -> Span | None:
    """Give the place where a name is an operand or argument of an expression itself; None where it
    is none, or several."""
    head, text = "(", within.text
    try:
        node = ast.parse(f"{head}{text})", mode="eval").body
    except SyntaxError:
        return None
    found = [n for n in _operands(node) if isinstance(n, ast.Name) and n.id == name]
    if len(found) != 1:
        return None
    (use,) = found
    lines = f"{head}{text}".splitlines(keepends=True)
    before = "".join(lines[: use.lineno - 1])
    line = lines[use.lineno - 1].encode()[: use.col_offset].decode()
    start = within.start + len(before) + len(line) - len(head)
    return Span(within.file, start, start + len(name))


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.Compare(left=left, comparators=comparators):
            yield from (left, *comparators)
        case ast.Call(func=func, args=args, keywords=keywords):
            if isinstance(func, ast.Attribute):
                yield func.value  # a method's own operand
            yield from args
            yield from (k.value for k in keywords)
        case ast.Subscript(value=value, slice=place):
            yield from (value, place)
        case _:
            pass
