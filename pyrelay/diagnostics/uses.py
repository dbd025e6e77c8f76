"""Where in an expression of the user's a name is used, and where in a call an argument stands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from .source import Span

_PIECES: Final = re.compile(
    r'"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|(?P<open>[(\[{])|(?P<close>[)\]}])'
    r"|(?P<comma>,)|(?P<name>\w+)\s*=(?!=)|\w+|\W",
    re.DOTALL,
)


def use_of(name: str, within: Span) -> Span | None:
    """Return the place where a name is an operand or argument of an expression itself; None where
    it is none, or several."""
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


def argument_place(name: str, call: Span) -> tuple[Span, Span] | None:
    """Return the places of the name and the value of a named argument in the text of a call; None
    where it has none, or the call is not written as one."""
    depth, found = 0, None
    for piece in _PIECES.finditer(call.text):
        depth += (piece["open"] is not None) - (piece["close"] is not None)
        if depth == 1 and piece["name"] == name:
            found = piece
        ends = depth == 0 if piece["close"] else depth == 1 and piece["comma"]
        if found is not None and ends:
            start = call.start + found.start()
            value = call.start + found.end(), call.start + piece.start()
            return Span(call.file, start, start + len(name)), _trimmed(Span(call.file, *value))
        if piece["close"] and depth == 0:
            return None
    return None


def _trimmed(span: Span) -> Span:
    """Return a place without the space around its text."""
    text = span.text
    start = span.start + len(text) - len(text.lstrip())
    return Span(span.file, start, start + len(text.strip()))
