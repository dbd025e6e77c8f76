"""Classes for the data types of a text: what their values are in a script.

A constructor is a frozen dataclass, so values are made by calling it and taken apart by `match`:
`module.classes["Cons"](1, module.classes["Nil"]())`. Fields without a name are `value`, or
`field0`, `field1` and so on. Lists and optionals of our own prelude are `relay.List` and None, as
everywhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from keyword import iskeyword
from typing import Any

from ...ir.module import ConstructorDef, Module
from ...ir.types import element_name
from ...prelude.library import LIST, OPTION
from ..values.representation import Instances, UserData, of_prelude


def data_of(module: Module) -> UserData:
    """Return classes for the data types of a module."""
    made: dict[str, Instances] = {}
    for adt in module.adts.values():
        if adt.name in (LIST, OPTION, *of_prelude()) or element_name(adt.name) in module.adts:
            continue
        names = [field_names(c) for c in adt.constructors]
        pairs = zip(adt.constructors, names, strict=True)
        classes = [_class(adt.name, c.name, n) for c, n in pairs]
        made[adt.name] = Instances.of(classes, names, of_text=True)
    return UserData(made, {})


def classes_of(data: UserData) -> Mapping[str, type]:
    """Return the classes by the names of the constructors, alone and behind that of their data
    type, `List::Nil`, which distinguishes those that share a name."""
    found: dict[str, type] = {}
    for adt, form in data.representations.items():
        for made in form.classes if isinstance(form, Instances) else ():
            found.setdefault(made.__name__, made)
            found[f"{adt}::{made.__name__}"] = made
    return found


def field_names(constructor: ConstructorDef) -> tuple[str, ...]:
    """Return the attributes of the class of a constructor."""
    count = len(constructor.fields)
    named = constructor.field_names
    if named and all(_is_plain(name) for name in named):
        return named
    return ("value",) if count == 1 else tuple(f"field{i}" for i in range(count))


def _is_plain(name: str) -> bool:
    return name.isidentifier() and not iskeyword(name) and not name.startswith("__")


def _class(adt: str, name: str, fields: tuple[str, ...]) -> type:
    made = dataclasses.make_dataclass(
        name if _is_plain(name) else "Data",
        [(f, Any) for f in fields],
        frozen=True,
        repr=False,
        namespace={"__repr__": _shown, "__doc__": f"The constructor `{name}` of `{adt}`."},
    )
    made.__name__ = name
    made.__module__ = adt
    return made


def _shown(value: Any) -> str:
    """Return a value as the call that makes it; the walk keeps its own stack."""
    parts: list[str] = []
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, _Text):
            parts.append(item)
        elif not hasattr(item, "__dataclass_fields__"):
            parts.append(repr(item))
        else:
            parts.append(f"{type(item).__name__}(")
            pending.append(_Text(")"))
            fields = [getattr(item, f.name) for f in dataclasses.fields(item)]
            for index, inner in reversed(list(enumerate(fields))):
                pending += (inner, _Text(", ")) if index else (inner,)
    return "".join(parts)


class _Text(str):
    """The separators between values."""

    __slots__ = ()
