"""Unions that have methods of a name, for calls of values whose type the text does not show."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import final

from ...dataclass import dataclass
from ...diagnostics.diagnostic import CheckError
from ..data.data_class import refusal
from ..data.methods import Method, MethodKind, kind_of
from ..source.definition import Definition
from ..source.unions import Namespace, Union
from ..types.annotation import NotData
from .program import SourceProgram


@final
@dataclass(frozen=True, slots=True)
class Family:
    """A union whose classes, or some of them, have a method of one name."""

    union: Union
    methods: Mapping[type, Method]

    @property
    def members(self) -> tuple[type, ...]:
        """The classes of the union."""
        return tuple(m.cls for m in self.union.members)


def families(
    program: SourceProgram, name: str, seen: Namespace, kinds: Container[MethodKind | None]
) -> list[Family]:
    """Return the unions in sight that have methods of one name, of some kinds."""
    found: dict[object, Family] = {}
    for cls in program.data_classes(seen):
        if kind_of(cls, name) not in kinds:
            continue
        try:
            union = program.data.union_of(cls, seen)
            methods = {m.cls: program.method(m.cls, name, seen) for m in union.members}
        except NotData:
            continue  # reported where a value of the class is made or annotated
        own = {c: m for c, m in methods.items() if m is not None and m.kind in kinds}
        found.setdefault(union.key, Family(union, own))
    return list(found.values())


def is_translatable(family: Family) -> bool:
    """Return whether the methods of a family can be relay functions, as far as their heads show."""
    return all(map(_has_types, family.methods.values())) and not any(map(refusal, family.members))


def _has_types(method: Method) -> bool:
    try:
        _ = method.definition.source
    except CheckError:
        return False
    args = method.definition.function.__annotations__
    owner, code = method.definition.owner, method.definition.function.__code__
    first = int(owner is not None and (owner.takes_self or owner.takes_class))
    names = code.co_varnames[first : code.co_argcount + code.co_kwonlyargcount]
    return all(n in args for n in names)


def methods_named(program: SourceProgram, name: str, seen: Namespace) -> Iterator[Definition]:
    """Return the methods of one name that a call may resolve to, of all unions in sight."""
    for family in families(program, name, seen, frozenset(MethodKind)):
        if is_translatable(family):
            yield from (m.definition for m in family.methods.values())
