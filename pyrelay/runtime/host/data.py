"""How generated code makes and takes apart values of algebraic data types.

The default is the tuple `(tag, *fields)` of `runtime.values`. Another representation, such as
instances of a user's own classes, is another `DataLayout`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, final

from ...ir.module import Module
from ...lower_torch.code import Code
from .. import values


class DataLayout(Protocol):
    """The representation of data in generated code."""

    def construct(
        self, code: Code, adt: str, constructor: str, fields: Sequence[ast.expr]
    ) -> ast.expr:
        """Give a value made by a constructor."""
        ...

    def function(self, adt: str, constructor: str) -> Callable[..., Any]:
        """Give a constructor as a function."""
        ...

    def test(self, code: Code, value: ast.expr, adt: str, constructor: str) -> ast.expr:
        """Give whether a value was made by a constructor."""
        ...

    def field(
        self, code: Code, value: ast.expr, adt: str, constructor: str, index: int
    ) -> ast.expr:
        """Give a field of a value that was made by the constructor."""
        ...


@final
class TaggedTuples:
    """Values are tuples of a tag and the fields."""

    def __init__(self, module: Module) -> None:
        self._module: Final = module

    def construct(
        self, code: Code, adt: str, constructor: str, fields: Sequence[ast.expr]
    ) -> ast.expr:
        """Give `(tag, *fields)`."""
        return code.tuple([self._tag(code, adt, constructor), *fields])

    def function(self, adt: str, constructor: str) -> Callable[..., Any]:
        """Give a function that makes the tuple."""
        tag = self._module.adts[adt].tag(constructor)
        return lambda *fields: values.construct(tag, fields)

    def test(self, code: Code, value: ast.expr, adt: str, constructor: str) -> ast.expr:
        """Give `value[0] == tag`."""
        tag = code.item(value, code.literal(0))
        return code.compare(ast.Eq(), tag, self._tag(code, adt, constructor))

    def field(
        self, code: Code, value: ast.expr, adt: str, constructor: str, index: int
    ) -> ast.expr:
        """Give `value[index + 1]`."""
        return code.item(value, code.literal(index + 1))

    def _tag(self, code: Code, adt: str, constructor: str) -> ast.expr:
        return code.literal(self._module.adts[adt].tag(constructor))
