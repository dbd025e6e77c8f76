"""Code that makes and takes apart values of data types (`runtime.values.representation`)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final, assert_never, final

from ...ir.module import Module
from ...lower_torch.code import Code
from ...prelude.values import Present, some
from ..values.representation import (
    Instances,
    Itself,
    Nullable,
    Representation,
    Representations,
    Tagged,
    representation,
)
from .names import identifier
from .pool import Pool


@final
class DataLayout:
    """The code for the data types of one program; what it needs is added to the pool."""

    def __init__(self, module: Module, known: Representations, pool: Pool) -> None:
        self._module: Final = module
        self._known: Final = known
        self._pool: Final = pool

    def construct(
        self, code: Code, adt: str, constructor: str, fields: Sequence[ast.expr]
    ) -> ast.expr:
        """Return a value made by a constructor."""
        form, tag = self._find(adt, constructor)
        match form:
            case Tagged():
                return code.tuple([code.literal(tag), *fields])
            case Itself():
                return fields[0]
            case Nullable():
                make = self._pool.data("some", some)
                return code.call(code.name(make), fields) if fields else code.literal(None)
            case Instances(makers=makers):
                make = self._pool.data(f"new__{identifier(constructor)}", makers[tag])
                return code.call(code.name(make), fields)
            case _:
                assert_never(form)

    def function(self, adt: str, constructor: str) -> Callable[..., Any]:
        """Return a constructor as a function."""
        form, tag = self._find(adt, constructor)
        return lambda *fields: form.construct(tag, fields)

    def test(self, code: Code, value: ast.expr, adt: str, constructor: str) -> ast.expr:
        """Return whether a value was made by a constructor."""
        form, tag = self._find(adt, constructor)
        match form:
            case Tagged():
                return code.compare(ast.Eq(), code.item(value, code.literal(0)), code.literal(tag))
            case Itself():
                return code.literal(True)
            case Nullable():
                operator = ast.Is() if tag else ast.IsNot()
                return code.compare(operator, value, code.literal(None))
            case Instances(classes=classes):
                cls = self._pool.data(f"class__{identifier(constructor)}", classes[tag])
                return code.compare(ast.Is(), self._type_of(code, value), code.name(cls))
            case _:
                assert_never(form)

    def field(
        self, code: Code, value: ast.expr, adt: str, constructor: str, index: int
    ) -> ast.expr:
        """Return a field of a value that was made by the constructor."""
        form, tag = self._find(adt, constructor)
        match form:
            case Tagged():
                return code.item(value, code.literal(index + 1))
            case Itself():
                return value
            case Nullable():
                present = code.name(self._pool.data("Some", Present))
                is_present = code.compare(ast.Is(), self._type_of(code, value), present)
                return code.conditional(is_present, code.attribute(value, "value"), value)
            case Instances(names=names):
                return code.attribute(value, names[tag][index])
            case _:
                assert_never(form)

    def _find(self, adt: str, constructor: str) -> tuple[Representation, int]:
        return representation(self._known, adt), self._module.adts[adt].tag(constructor)

    def _type_of(self, code: Code, value: ast.expr) -> ast.expr:
        return code.call(code.name(self._pool.data("type__of", type)), [value])
