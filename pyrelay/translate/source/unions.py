"""Unions of dataclasses: which aliases there are, and to which one a class belongs.

A class belongs to the union alias that has it as a member. An alias of `Never` is a union of no
members, and each one is a type of its own. The alias of a class is looked for where the class is
defined: in its module, and in what the function that mentions the class sees (its own module, the
names it captures, the classes and aliases of the functions around it). Aliases of the same members
are the same union, named by the first; `| None` is no member. A class in two different unions is
refused where it is used.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard, final

from ...dataclass import dataclass

Namespace: TypeAlias = Mapping[str, Any]
Evaluate: TypeAlias = Callable[[str], Any]
"""Return the value of an annotation that is text. May raise anything."""


@final
@dataclass(frozen=True, slots=True)
class Member:
    """A class in a union, and the type arguments with which it stands there."""

    cls: type
    args: tuple[Any, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """A data type as it is written: an alias with its members, or a class alone.

    `holder` is where the name was found, `value` what it had there. `others` are the members that
    are no dataclasses, which a data type cannot have.
    """

    name: str
    members: tuple[Member, ...]
    others: tuple[Any, ...]
    params: tuple[Any, ...]
    holder: Namespace
    value: Any

    @property
    def key(self) -> frozenset[Any]:
        """The identity of a union: its classes, or the alias itself where it has none."""
        return frozenset(m.cls for m in self.members) or frozenset((self.value,))

    @property
    def place(self) -> str:
        """The name with the module it was found in, for messages."""
        module = self.holder.get("__name__")
        return f"`{self.name}` of {module}" if module else f"`{self.name}`"


def is_data_class(value: object) -> TypeGuard[type]:
    """Return whether a value is a dataclass, not an instance of one."""
    return isinstance(value, type) and dataclasses.is_dataclass(value)


def is_users_class(value: object) -> bool:
    """Return whether a value is a class that a script has defined, which might have been data."""
    return isinstance(value, type) and value.__module__.split(".")[0] not in _OTHERS


_OTHERS: Final = (
    "abc", "builtins", "collections", "datetime", "enum", "jax", "numpy", "pyrelay", "torch",
    "types", "typing", "typing_extensions",
)  # fmt: skip


def may_be_field(name: str, seen: Namespace) -> bool:
    """Return whether an attribute may be a field of a class in sight; cells have `value` too."""
    if name == "value":
        return True
    known = (v for v in seen.values() if is_data_class(v))
    return any(name in v.__dataclass_fields__ for v in known)


def is_named_alias(value: object) -> bool:
    """Return whether a value was made by a `type` statement (or by typing_extensions for it)."""
    return type(value).__name__ == "TypeAliasType"


def names_nothing(value: Any, evaluate: Evaluate | None) -> bool:
    """Return whether a value is a named alias of `Never`: a data type without constructors."""
    if not is_named_alias(value):
        return False
    whole = value.__value__
    whole = getattr(whole, "__forward_arg__", whole)
    if isinstance(whole, str) and evaluate is not None:
        whole = evaluate(whole)
    return any(whole is never for never in NEVER)


NEVER: Final = (typing.Never, typing.NoReturn)
"""The type without values."""


def names_data(value: object) -> bool:
    """Return whether a value is a dataclass or may be a union of them."""
    is_union = typing.get_origin(value) in (typing.Union, types.UnionType)
    return is_union or is_data_class(value) or is_named_alias(value)


def members_of(value: Any, evaluate: Evaluate | None = None) -> tuple[Any, ...] | None:
    """Return the members of a union, None of them left out; None for any other value."""
    if is_named_alias(value):
        value = value.__value__
    if typing.get_origin(value) not in (typing.Union, types.UnionType):
        return None
    found: list[Any] = []
    for member in typing.get_args(value):
        if isinstance(member, typing.ForwardRef):
            if evaluate is None:
                return None
            member = evaluate(member.__forward_arg__)
        found.append(member)
    return tuple(m for m in found if m is not type(None) and m is not None)


def member_of(value: Any) -> Member | None:
    """Return a dataclass, with or without type arguments, as a member; None for anything else."""
    origin = typing.get_origin(value)
    if origin is not None and is_data_class(origin):
        return Member(origin, typing.get_args(value))
    return Member(value, ()) if is_data_class(value) else None


def homes(cls: type, seen: Namespace) -> tuple[Namespace, ...]:
    """Return where the union of a class is looked for; `seen` are the names in scope at the
    mention."""
    module = sys.modules.get(cls.__module__)
    return (seen,) if module is None else (vars(module), seen)


def unions_with(
    cls: type, seen: Namespace, evaluate: Callable[[Namespace], Evaluate]
) -> list[Union]:
    """Return the different unions that have a class as a member, in order of definition."""
    found: dict[frozenset[type], Union] = {}
    for home in homes(cls, seen):
        for name, value in list(home.items()):
            if not _may_be_union(home, name, value):
                continue
            union = _union(name, value, home, evaluate(home))
            if union is not None and _joins(union) and cls in union.key:
                found.setdefault(union.key, union)
    return list(found.values())


def alone(cls: type, seen: Namespace) -> Union:
    """Return a class that is in no union as a data type of its own."""
    params = parameters(cls)
    return Union(cls.__name__, (Member(cls, params),), (), params, homes(cls, seen)[0], cls)


def without_members(value: Any, seen: Namespace) -> Union:
    """Return an alias of `Never` as a data type."""
    name = value.__name__
    module = sys.modules.get(str(value.__module__))
    home = seen if module is None or vars(module).get(name) is not value else vars(module)
    return Union(name, (), (), parameters(value), home, value)


def parameters(value: Any) -> tuple[Any, ...]:
    """Return the type parameters of a class or an alias, in order."""
    own = getattr(value, "__type_params__", ()) if is_named_alias(value) else ()
    return tuple(own or getattr(value, "__parameters__", ()))


def solved(union: Union, given: Sequence[Member]) -> dict[Any, Any]:
    """Return the type arguments of a union whose members stand with arguments of their own."""
    written = {m.cls: m.args for m in union.members}
    found: dict[Any, Any] = {}
    for member in given:
        for param, arg in zip(written.get(member.cls, ()), member.args, strict=False):
            if isinstance(param, typing.TypeVar):
                found.setdefault(param, arg)
    return found


def _joins(union: Union) -> bool:
    return len(union.members) + len(union.others) > 1


def _may_be_union(home: Namespace, name: str, value: Any) -> bool:
    if isinstance(value, str):
        return ("|" in value or "Union" in value) and _is_declared_alias(home, name)
    return is_named_alias(value) or typing.get_origin(value) in (typing.Union, types.UnionType)


def _is_declared_alias(home: Namespace, name: str) -> bool:
    declared = home.get("__annotations__", {}).get(name)
    return declared is typing.TypeAlias or declared in ("TypeAlias", "typing.TypeAlias")


def _union(name: str, value: Any, home: Namespace, evaluate: Evaluate) -> Union | None:
    try:
        whole = evaluate(value) if isinstance(value, str) else value
        parts = members_of(whole, evaluate)
    except Exception:  # an alias of names that are not defined (yet) has no members to offer
        return None
    if parts is None:
        return None
    members = tuple(m for m in map(member_of, parts) if m is not None)
    others = tuple(p for p in parts if member_of(p) is None)
    return Union(name, members, others, parameters(whole), home, value)


def with_none(value: Any, evaluate: Evaluate | None) -> bool:
    """Return whether a union has None as a member."""
    whole = value.__value__ if is_named_alias(value) else value
    if members_of(whole, evaluate) is None:
        return False
    return any(a is type(None) or a is None for a in typing.get_args(whole))
