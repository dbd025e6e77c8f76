"""Data types as classes: a frozen dataclass for each constructor, joined by an alias.

A data type with one constructor is a record, and is called like its class; one without any is an
alias of `Never`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Final, final

from ..ir.dims import Dim
from ..ir.module import AdtDef, ConstructorDef, Module
from ..ir.types import (
    PRELUDE,
    AdtType,
    DimVar,
    SizeType,
    TensorType,
    Type,
    TypeParam,
    element_name,
    subtypes,
)
from ..operators.host.stream import STREAM_DATA
from ..prelude.library import LIST, NAT, OPTION, TREE
from . import syntax
from .names import Identifiers

LIBRARY_TYPES: Final = {LIST: "List", OPTION: "Option", TREE: "Rose", NAT: "Nat"}
"""The names of the prelude's data types in `pyrelay.prelude`."""

LIBRARY_CLASSES: Final = {
    (LIST, "Cons"): "Cons",
    (LIST, "Nil"): "Nil",
    (TREE, "Rose"): "Rose",
    (NAT, "Zero"): "Zero",
    (NAT, "Succ"): "Succ",
    (OPTION, "Some"): "Some",
    (OPTION, "None"): "Nothing",
}
"""The names of the prelude's constructors there."""


@final
class DataNames:
    """The names of the data types of a module, their constructors and their parameters."""

    def __init__(self, module: Module, names: Identifiers) -> None:
        self.types: Final[dict[str, str]] = {}
        self.classes: Final[dict[tuple[str, str], str]] = {}
        self.params: Final[dict[str, dict[str, str]]] = {}
        for name, adt in module.adts.items():
            if name.startswith(PRELUDE) or (name in STREAM_DATA and not adt.constructors):
                continue
            if element_name(name) is not None:
                continue  # an instance of the class of its elements
            classes = [names.fresh(c.name) for c in adt.constructors]
            for constructor, chosen in zip(adt.constructors, classes, strict=True):
                self.classes[name, constructor.name] = chosen
            self.types[name] = classes[0] if len(classes) == 1 else names.fresh(name)
            self.params[name] = {p.name: names.fresh(p.name) for p in adt.type_params}

    def class_of(self, adt: str, constructor: str) -> str:
        """Return the name of the class of a constructor; a batch has that of its elements."""
        element = element_name(adt)
        if element is not None:
            return self.class_of(element, constructor)
        return self.classes[adt, constructor]


def field_names(constructor: ConstructorDef) -> tuple[str, ...]:
    """Return the names of the fields of a class; those that have none are numbered."""
    names = Identifiers()
    if constructor.field_names:
        return tuple(names.fresh(n) for n in constructor.field_names)
    return tuple(names.fresh(f"field_{i}") for i in range(len(constructor.fields)))


def definitions(
    adt: AdtDef,
    names: DataNames,
    annotation: Callable[[Type], ast.expr],
    use: Callable[[str], ast.expr],
) -> Iterator[list[ast.stmt]]:
    """Return the statements that define a data type: one group for each class, then the alias;
    `use` mentions the names they need."""
    params = names.params[adt.name]
    variables = [syntax.name(p) for p in params.values()]
    inside = variables[0] if len(variables) == 1 else syntax.tuple_of(variables)
    if params:
        made: list[ast.stmt] = []
        for param in adt.type_params:
            kept = params[param.name]
            bound = {} if is_determined(param, adt) else {"bound": use("Dim")}
            called = syntax.call(use("TypeVar"), [ast.Constant(kept)], bound)
            made.append(syntax.assign(kept, called))
        yield made
    for constructor in adt.constructors:
        fields: list[ast.stmt] = [
            ast.AnnAssign(ast.Name(n, syntax.STORE), annotation(ty), None, 1)
            for n, ty in zip(field_names(constructor), constructor.fields, strict=True)
        ]
        bases = [syntax.item(use("Generic"), inside)] if params else []
        frozen = syntax.call(use("dataclass"), [], {"frozen": ast.Constant(True)})
        title = names.classes[adt.name, constructor.name]
        yield [syntax.class_of(title, bases, fields or [ast.Pass()], [frozen])]
    if not adt.constructors:
        named = {"type_params": syntax.tuple_of(variables)} if params else {}
        title = names.types[adt.name]
        alias = syntax.call(use("TypeAliasType"), [ast.Constant(title), use("Never")], named)
        yield [syntax.assign(title, alias)]
    if len(adt.constructors) > 1:
        members = [syntax.name(names.classes[adt.name, c.name]) for c in adt.constructors]
        union: ast.expr | None = None
        for member in members:
            part = syntax.item(member, inside) if params else member
            union = part if union is None else ast.BinOp(union, ast.BitOr(), part)
        assert union is not None
        yield [syntax.assign(names.types[adt.name], union)]


def is_determined(param: TypeParam, adt: AdtDef) -> bool:
    """Return whether the fields of a data type show what a parameter is, a type or a size: a size
    stands in a shape, and nowhere in arithmetic or alone, which say what it is before."""
    if not isinstance(param, DimVar):
        return True
    in_shape = False
    for part in (p for ty in adt.fields for p in subtypes(ty)):
        match part:
            case TensorType(shape):
                found = shape
                in_shape = in_shape or Dim.atom(param) in shape
            case AdtType(args=args):
                found = tuple(a for a in args if isinstance(a, Dim))
            case SizeType(dim) if param.name in dim.names():
                return False
            case _:
                continue
        if any(param.name in d.names() and d.name is None for d in found):
            return False
    return in_shape
