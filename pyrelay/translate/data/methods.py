"""Methods and properties of frozen dataclasses as relay functions.

A method needs no decorator: a call of it in compiled code compiles it. `self` has the type of the
class's union, and its body knows the class, as after `assert isinstance(self, C)`.
"""

from __future__ import annotations

import ast
import functools
import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from types import FunctionType
from typing import Any, Final, final

from ...dataclass import dataclass
from ...ir.dims import Dim
from ..source.definition import Definition, DefinitionKind, Owner
from ..source.unions import Namespace, Union, parameters
from ..types.aliases import is_size


class MethodKind(Enum):
    """How a method is called."""

    METHOD = "method"
    PROPERTY = "property"
    STATIC = "static method"
    CLASS = "class method"


CALLED: Final = frozenset({MethodKind.METHOD, MethodKind.STATIC, MethodKind.CLASS})
"""The kinds of `x.name(...)`."""
READ: Final = frozenset({MethodKind.PROPERTY})
"""The kinds of `x.name`."""


@final
@dataclass(frozen=True, slots=True)
class Method:
    """A method of a class, perhaps inherited from a base that is no dataclass."""

    home: type
    """The class that defines it."""
    kind: MethodKind
    definition: Definition


SYMBOLS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "__add__",
    ast.Sub: "__sub__",
    ast.Mult: "__mul__",
    ast.Div: "__truediv__",
    ast.FloorDiv: "__floordiv__",
    ast.Mod: "__mod__",
    ast.Pow: "__pow__",
    ast.MatMult: "__matmul__",
    ast.USub: "__neg__",
    ast.Eq: "__eq__",
    ast.Lt: "__lt__",
    ast.LtE: "__le__",
    ast.Gt: "__gt__",
    ast.GtE: "__ge__",
    ast.Subscript: "__getitem__",
    ast.Call: "__call__",
}
"""The methods that operators of Python stand for."""


def reflected(name: str) -> str:
    """Return the method that the right operand of an operator has for a left one of another
    class."""
    return f"__r{name.removeprefix('__')}"


_SPECIAL: Final = frozenset((*SYMBOLS.values(), *map(reflected, SYMBOLS.values()), "__len__"))


def kind_of(cls: type, name: str) -> MethodKind | None:
    """Return the kind of the method that a dataclass has under a name; None if it has none."""
    found = _found(cls, name)
    return None if found is None else found[1]


def method(cls: type, name: str, union: Union, seen: Namespace) -> Method | None:
    """Return the method that a member of a union has under a name; None if it has none. `seen` are
    the names in scope where it is mentioned."""
    found = _found(cls, name)
    if found is None:
        return None
    home, kind, function = found
    takes_self = kind in (MethodKind.METHOD, MethodKind.PROPERTY)
    names = _names(cls, function, union, seen)
    takes_class = kind is MethodKind.CLASS
    owner = Owner(cls.__name__, cls, names, takes_self=takes_self, takes_class=takes_class)
    return Method(home, kind, Definition(function, DefinitionKind.FUNCTION, owner))


def _found(cls: type, name: str) -> tuple[type, MethodKind, FunctionType] | None:
    is_internal = name.startswith("__") and name not in _SPECIAL
    if is_internal or name in getattr(cls, "__dataclass_fields__", {}):
        return None
    home = next((base for base in cls.__mro__[:-1] if name in vars(base)), None)
    if home is None:
        return None
    kind, function = _unwrapped(vars(home)[name])
    if not isinstance(function, FunctionType) or hasattr(function, "__isabstractmethod__"):
        return None
    if function.__code__.co_filename == "<string>":  # `dataclass` has made it
        return None
    return home, kind, function


def _unwrapped(value: Any) -> tuple[MethodKind, Any]:
    """Return the function of an attribute of a class, and how it is called."""
    match value:
        case property():
            return MethodKind.PROPERTY, value.fget
        case functools.cached_property():
            return MethodKind.PROPERTY, value.func
        case staticmethod():
            return MethodKind.STATIC, value.__func__
        case classmethod():
            return MethodKind.CLASS, value.__func__
        case _:
            return MethodKind.METHOD, value


def _names(cls: type, function: FunctionType, union: Union, seen: Namespace) -> Mapping[str, Any]:
    """Return the names that annotations in a method may mention besides those around its function:
    the type parameters of its class, as the union names them, and `Self`."""
    member = next(m for m in union.members if m.cls is cls)
    params = parameters(cls)
    args = member.args if len(member.args) == len(params) else params
    own = {
        p.__name__: Dim.of(a.__name__) if is_size(p) and is_size(a) else a
        for p, a in zip(params, args, strict=True)
    }
    around = seen if "<locals>" in cls.__qualname__ else {}
    globals_ = function.__globals__
    selves = [n for n, v in globals_.items() if v is typing.Self]
    whole: Any = cls
    written = dict.fromkeys(selves, whole[args] if params else whole)
    return {**around, **own, **written}


def choice(union: Union, methods: Sequence[tuple[type, Method | None]]) -> Definition:
    """Return the function that calls the method of an instance's class."""
    first = next(m.definition for _, m in methods if m is not None)
    assert first.owner is not None
    choices = tuple((c, None if m is None else m.definition) for c, m in methods)
    owner = replace(first.owner, name=union.name, choices=choices)
    return Definition(first.function, DefinitionKind.FUNCTION, owner)
