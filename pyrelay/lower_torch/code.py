"""Python syntax nodes, each at the place in the user's text that it comes from.

Host code is built as an `ast`, never as text, so that a traceback, a debugger and a profiler show
the user's own line and columns.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Final, TypeAlias, TypedDict, final

from ..diagnostics.source import SourceFile, Span


class Location(TypedDict):
    """Where a node stands, as `ast` counts."""

    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int


Literal: TypeAlias = int | float | bool | str | EllipsisType | None

LOAD: Final = ast.Load()
STORE: Final = ast.Store()
DELETE: Final = ast.Del()


@final
class Code:
    """Makes syntax nodes for one file; `at` sets the place of those that follow."""

    def __init__(self, file: SourceFile) -> None:
        self._file: Final = file
        self._places: Final[dict[tuple[int, int], Location]] = {}
        self._place: Location = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}

    def at(self, span: Span) -> None:
        """Move to a span. One in another file, inlined from there, keeps the place before it."""
        if span.file is not self._file or not self._file.text:
            return
        key = (span.start, span.end)
        if key not in self._places:
            self._places[key] = _place(span)
        self._place = self._places[key]

    def name(self, name: str) -> ast.Name:
        """Return the value of a name."""
        return ast.Name(name, LOAD, **self._place)

    def literal(self, value: Literal) -> ast.expr:
        """Return a literal; a negative number is a negation, as in text."""
        if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
            return ast.UnaryOp(ast.USub(), ast.Constant(-value, **self._place), **self._place)
        return ast.Constant(value, **self._place)

    def attribute(self, value: ast.expr, name: str) -> ast.Attribute:
        """Return `value.name`."""
        return ast.Attribute(value, name, LOAD, **self._place)

    def item(self, value: ast.expr, index: ast.expr) -> ast.Subscript:
        """Return `value[index]`."""
        return ast.Subscript(value, index, LOAD, **self._place)

    def slice(self, parts: Sequence[ast.expr | None]) -> ast.Slice:
        """Return `start:stop:step`, for an index."""
        start, stop, step = parts
        return ast.Slice(start, stop, step, **self._place)

    def call(
        self,
        function: ast.expr,
        args: Sequence[ast.expr],
        keywords: dict[str, ast.expr] | None = None,
    ) -> ast.Call:
        """Return `function(*args, **keywords)`."""
        named = [ast.keyword(k, v, **self._place) for k, v in (keywords or {}).items()]
        return ast.Call(function, list(args), named, **self._place)

    def method(self, value: ast.expr, name: str, *args: ast.expr) -> ast.Call:
        """Return `value.name(*args)`."""
        return self.call(self.attribute(value, name), args)

    def binary(self, operator: ast.operator, left: ast.expr, right: ast.expr) -> ast.BinOp:
        """Return `left operator right`."""
        return ast.BinOp(left, operator, right, **self._place)

    def unary(self, operator: ast.unaryop, value: ast.expr) -> ast.UnaryOp:
        """Return `operator value`."""
        return ast.UnaryOp(operator, value, **self._place)

    def compare(self, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> ast.Compare:
        """Return `left operator right`, a comparison."""
        return ast.Compare(left, [operator], [right], **self._place)

    def outside(self, value: ast.expr, lowest: int, highest: int) -> ast.expr:
        """Return `not lowest <= value <= highest`."""
        bounds = self.literal(lowest), self.literal(highest)
        inside = ast.Compare(bounds[0], [ast.LtE(), ast.LtE()], [value, bounds[1]], **self._place)
        return self.unary(ast.Not(), inside)

    def either(self, left: ast.expr, right: ast.expr) -> ast.expr:
        """Return `left or right`."""
        return ast.BoolOp(ast.Or(), [left, right], **self._place)

    def conditional(self, test: ast.expr, then: ast.expr, otherwise: ast.expr) -> ast.IfExp:
        """Return `then if test else otherwise`."""
        return ast.IfExp(test, then, otherwise, **self._place)

    def both(self, tests: Sequence[ast.expr]) -> ast.expr:
        """Return `test and test and ...`."""
        return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), list(tests), **self._place)

    def tuple(self, fields: Sequence[ast.expr]) -> ast.Tuple:
        """Return `(field, ...)`."""
        return ast.Tuple(list(fields), LOAD, **self._place)

    def list(self, fields: Sequence[ast.expr]) -> ast.List:
        """Return `[field, ...]`."""
        return ast.List(list(fields), LOAD, **self._place)

    def yielded(self, value: ast.expr) -> ast.Yield:
        """Return `yield value`."""
        return ast.Yield(value, **self._place)

    def assign(self, target: str, value: ast.expr) -> ast.Assign:
        """Return `target = value`."""
        return ast.Assign([ast.Name(target, STORE, **self._place)], value, **self._place)

    def assign_all(self, targets: Sequence[str], values: Sequence[ast.expr]) -> ast.Assign:
        """Return `a, b = x, y`, all values before any target; `a = x` for one."""
        if len(targets) == 1:
            return self.assign(targets[0], values[0])
        return self.unpack(targets, self.tuple(values))

    def unpack(self, targets: Sequence[str], value: ast.expr) -> ast.Assign:
        """Return `a, b = value`, also for one target."""
        names: list[ast.expr] = [ast.Name(t, STORE, **self._place) for t in targets]
        return ast.Assign([ast.Tuple(names, STORE, **self._place)], value, **self._place)

    def set_attribute(self, value: ast.expr, name: str, new: ast.expr) -> ast.Assign:
        """Return `value.name = new`."""
        target = ast.Attribute(value, name, STORE, **self._place)
        return ast.Assign([target], new, **self._place)

    def delete(self, names: Sequence[str]) -> ast.Delete:
        """Return `del a, b`."""
        return ast.Delete([ast.Name(n, DELETE, **self._place) for n in names], **self._place)

    def evaluate(self, value: ast.expr) -> ast.Expr:
        """Return an expression as a statement."""
        return ast.Expr(value, **self._place)

    def returned(self, value: ast.expr) -> ast.Return:
        """Return `return value`."""
        return ast.Return(value, **self._place)

    def branch(
        self, test: ast.expr, then: Sequence[ast.stmt], otherwise: Sequence[ast.stmt]
    ) -> ast.If:
        """Return `if test: ... else: ...`."""
        return ast.If(test, list(then) or [self.nothing()], list(otherwise), **self._place)

    def nothing(self) -> ast.Pass:
        """Return `pass`."""
        return ast.Pass(**self._place)

    def forever(self, body: Sequence[ast.stmt]) -> ast.While:
        """Return `while True: ...`."""
        return ast.While(self.literal(True), list(body), [], **self._place)

    def leave(self) -> ast.Break:
        """Return `break`."""
        return ast.Break(**self._place)

    def again(self) -> ast.Continue:
        """Return `continue`."""
        return ast.Continue(**self._place)

    def stop(self, error: ast.expr) -> ast.Raise:
        """Return `raise error from None`."""
        return ast.Raise(error, self.literal(None), **self._place)

    def function(
        self, name: str, params: Sequence[str], body: Sequence[ast.stmt]
    ) -> ast.FunctionDef:
        """Return `def name(params): ...`."""
        fields: dict[str, Any] = {
            "posonlyargs": [],
            "args": [ast.arg(p, **self._place) for p in params],
            "kwonlyargs": [],
            "kw_defaults": [],
            "defaults": [],
        }
        made: dict[str, Any] = {"decorator_list": [], "type_params": [], **self._place}
        # Python 3.11 has no `type_params`, and ignores the attribute.
        return ast.FunctionDef(name=name, args=ast.arguments(**fields), body=list(body), **made)


def _place(span: Span) -> Location:
    line, column = span.file.byte_position(span.start)
    end_line, end_column = span.file.byte_position(span.end)
    return {
        "lineno": line,
        "col_offset": column,
        "end_lineno": end_line,
        "end_col_offset": end_column,
    }
