"""Users' classes in saved models: how they are described, and classes for what is described.

A file contains no code, so it contains no class. A class of the same name and fields that the
process has already, in the module it comes from, is used; nothing is imported. Otherwise a frozen
dataclass of that name and these fields is made.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from ...ir.module import AdtDef, Module
from ...translate.data.data_class import Field, fields_of, why_not
from ...translate.source.scope import MISSING
from ...translate.types import number_places
from ...translate.types.number_places import Numbers
from ..entries.call_signature import plain, read_plain
from ..values.representation import Instances, UserData


def described(data: UserData, module: Module) -> dict[str, list[dict[str, Any]]]:
    """Return a description, as JSON, of each data type of a program that has classes."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in module.adts:
        form = data.representations.get(name)
        if isinstance(form, Instances):
            pairs = zip(form.classes, data.numbers[name], strict=True)
            found[name] = [_described(cls, numbers) for cls, numbers in pairs]
    return found


def _described(cls: type, numbers: Sequence[Numbers]) -> dict[str, Any]:
    fields = fields_of(cls)
    defaults = {f.name: plain(f.default) for f in fields}
    return {
        "module": cls.__module__,
        "name": cls.__qualname__,
        "numbers": [number_places.described(n) for n in numbers],
        "defaults": {n: v for n, v in defaults.items() if v is not MISSING},
        "keyword_only": [f.name for f in fields if f.keyword_only],
    }


def restored(descriptions: Mapping[str, Any], module: Module) -> UserData:
    """Return the runtime's descriptions of the classes of a program. What does not describe its
    data types is a ValueError, TypeError, AttributeError or KeyError."""
    made: dict[str, Instances] = {}
    numbers: dict[str, tuple[tuple[Numbers, ...], ...]] = {}
    for name, classes in descriptions.items():
        definition = module.adts[name]
        found = list(_classes(definition, classes))
        made[name] = Instances.of(found, [c.field_names for c in definition.constructors])
        numbers[name] = tuple(tuple(map(number_places.restored, c["numbers"])) for c in classes)
    return UserData(made, numbers)


def _classes(definition: AdtDef, descriptions: Sequence[Mapping[str, Any]]) -> Iterator[type]:
    for constructor, described in zip(definition.constructors, descriptions, strict=True):
        names = constructor.field_names
        if not len(names) == len(constructor.fields) == len(described["numbers"]):
            raise ValueError(f"the fields of `{constructor.name}`")
        known = _known(str(described["module"]), str(described["name"]), names)
        yield _made(str(described["name"]), names, described) if known is None else known


def _known(module: str, path: str, names: Sequence[str]) -> type | None:
    """Return the class of a name that the process has, if it has these fields."""
    owner: Any = sys.modules.get(module)
    for part in path.split("."):
        if not isinstance(owner, ModuleType | type):
            return None
        owner = vars(owner).get(part)
    if not isinstance(owner, type) or why_not(owner) is not None:
        return None
    return owner if [f.name for f in fields_of(owner)] == list(names) else None


def _made(path: str, names: Sequence[str], described: Mapping[str, Any]) -> type:
    defaults, by_name = described["defaults"], described["keyword_only"]
    fields = [Field(n, Any, read_plain(defaults.get(n, MISSING)), n in by_name) for n in names]
    made = dataclasses.make_dataclass(
        path.rsplit(".", 1)[-1],
        [(f.name, f.annotation, _field(f)) for f in fields],
        frozen=True,
        namespace={"__doc__": "A data type of a saved model."},
    )
    made.__module__, made.__qualname__ = str(described["module"]), path
    return made


def _field(field: Field) -> Any:
    if field.default is MISSING:
        return dataclasses.field(kw_only=field.keyword_only)
    return dataclasses.field(default=field.default, kw_only=field.keyword_only)
