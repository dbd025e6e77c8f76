"""Data types as classes: a frozen dataclass for each constructor, joined by an alias.

A data type with one constructor is a record, and is called like its class.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Final, final

from ...ir.module import AdtDef, ConstructorDef, Module
from ...ir.types import PRELUDE, Type
from ...prelude.library import LIST, NAT, OPTION, TREE
from . import syntax
from .names import Identifiers

LIBRARY_TYPES: Final = {LIST: "List", OPTION: "Option", TREE: "Rose", NAT: "Nat"}
"""What data types of the prelude are called in `pyrelay.prelude`."""

LIBRARY_CLASSES: Final = {
    (LIST, "Cons"): "Cons",
    (LIST, "Nil"): "Nil",
    (TREE, "Rose"): "Rose",
    (NAT, "Zero"): "Zero",
    (NAT, "Succ"): "Succ",
    (OPTION, "Some"): "Some",
    (OPTION, "None"): "Nothing",
}
"""What constructors of the prelude are called there."""


@final
class DataNames:
    """What the data types of a module, their constructors and their parameters are called."""

    def __init__(self, module: Module, names: Identifiers) -> None:
        self.types: Final[dict[str, str]] = {}
        self.classes: Final[dict[tuple[str, str], str]] = {}
        self.params: Final[dict[str, dict[str, str]]] = {}
        for name, adt in module.adts.items():
            if name.startswith(PRELUDE) or not adt.constructors:
                continue
            classes = [names.fresh(c.name) for c in adt.constructors]
            for constructor, chosen in zip(adt.constructors, classes, strict=True):
                self.classes[name, constructor.name] = chosen
            self.types[name] = classes[0] if len(classes) == 1 else names.fresh(name)
            self.params[name] = {p.name: names.fresh(p.name) for p in adt.type_params}


def field_names(constructor: ConstructorDef) -> tuple[str, ...]:
    """Give the names of the fields of a class; those that have none are numbered."""
    names = Identifiers()
    if constructor.field_names:
        return tuple(names.fresh(n) for n in constructor.field_names)
    return tuple(names.fresh(f"field_{i}") for i in range(len(constructor.fields)))


def definitions(
    adt: AdtDef, names: DataNames, annotation: Callable[[Type], ast.expr]
) -> Iterator[list[ast.stmt]]:
    """Give the statements that define a data type: one group for each class, then the alias."""
    params = names.params[adt.name]
    variables = [syntax.name(p) for p in params.values()]
    inside = variables[0] if len(variables) == 1 else syntax.tuple_of(variables)
    if params:
        kinds = ast.Assign
        yield [
            kinds(
                [ast.Name(p, syntax.STORE)],
                syntax.call(syntax.name("TypeVar"), [ast.Constant(p)]),
                lineno=0,
            )
            for p in params.values()
        ]
    for constructor in adt.constructors:
        fields: list[ast.stmt] = [
            ast.AnnAssign(ast.Name(n, syntax.STORE), annotation(ty), None, 1)
            for n, ty in zip(field_names(constructor), constructor.fields, strict=True)
        ]
        bases = [syntax.item(syntax.name("Generic"), inside)] if params else []
        frozen = syntax.call(syntax.name("dataclass"), [], {"frozen": ast.Constant(True)})
        title = names.classes[adt.name, constructor.name]
        yield [syntax.class_of(title, bases, fields or [ast.Pass()], [frozen])]
    if len(adt.constructors) > 1:
        members = [syntax.name(names.classes[adt.name, c.name]) for c in adt.constructors]
        union: ast.expr | None = None
        for member in members:
            part = syntax.item(member, inside) if params else member
            union = part if union is None else ast.BinOp(union, ast.BitOr(), part)
        assert union is not None
        yield [syntax.assign(names.types[adt.name], union)]
