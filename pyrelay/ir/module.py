"""Modules: the global functions and algebraic data types of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from ..dataclass import dataclass
from .types import AdtType, Type, TypeParam, substitution

if TYPE_CHECKING:
    from ..diagnostics.source import Span
    from .expr import Expr, Function

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class ConstructorDef:
    """A constructor: its name, the types of its fields, and their names where it has them."""

    name: str
    fields: tuple[Type, ...]
    field_names: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class AdtDef:
    """An algebraic data type, nominal: two definitions are never the same type."""

    name: str
    type_params: tuple[TypeParam, ...]
    constructors: tuple[ConstructorDef, ...]
    span: Span
    by_identity: bool = False
    """Whether Python compares instances of a class of it by identity."""

    @property
    def fields(self) -> tuple[Type, ...]:
        """The types of the fields of all constructors, in order."""
        return tuple(ty for constructor in self.constructors for ty in constructor.fields)

    def constructor(self, name: str) -> ConstructorDef:
        """Return the constructor of that name. Raises KeyError if there is none."""
        for constructor in self.constructors:
            if constructor.name == name:
                return constructor
        raise KeyError(name)

    def field_types(self, ty: AdtType, name: str) -> tuple[Type, ...]:
        """Return the types of the fields of a constructor, in values of type `ty`."""
        instance = substitution(self.type_params, ty.args)
        return tuple(map(instance, self.constructor(name).fields))

    def tag(self, name: str) -> int:
        """Return the position of a constructor among its siblings."""
        return [c.name for c in self.constructors].index(name)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ModuleKey(Generic[T]):
    """A key under which a pass attaches data of type `T` to a module, for later passes.

    `classes` are the dataclasses and enums that the data is made of, besides those of the IR; empty
    if it is nothing that could be kept on disk.
    """

    name: str
    classes: tuple[type, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Module:
    """Global functions and data types by name, in order of definition. Never changed in place."""

    functions: Mapping[str, Function]
    adts: Mapping[str, AdtDef]
    strict_dtypes: bool = False
    """Whether operands of two dtypes are a mistake, as in Relay's text; until types are there."""
    attributes: Mapping[ModuleKey[Any], Any] = field(default_factory=dict["ModuleKey[Any]", Any])
    """Data that passes attached; it is neither printed nor compared."""

    def __str__(self) -> str:
        """Return the text of the module, which `relay.parse` reads."""
        from ..text.printer import to_text  # it prints modules

        return to_text(self)

    def attribute(self, key: ModuleKey[T]) -> T | None:
        """Return the data that a pass attached to the module under a key; None without it."""
        return self.attributes.get(key)

    def with_attribute(self, key: ModuleKey[T], value: T) -> Module:
        """Return the module with data attached to it."""
        return replace(self, attributes={**self.attributes, key: value})

    def with_functions(self, functions: Mapping[str, Function]) -> Module:
        """Return the module with functions replaced or added."""
        return replace(self, functions={**self.functions, **functions})

    def map_functions(self, change: Callable[[Function], Function]) -> Module:
        """Return the module with what `change` makes of each function; itself if that is
        nothing."""
        functions = {name: change(function) for name, function in self.functions.items()}
        if all(functions[name] is old for name, old in self.functions.items()):
            return self
        return replace(self, functions=functions)

    def map_bodies(self, change: Callable[[Function], Expr]) -> Module:
        """Return the module with what `change` makes of the body of each function; itself if that
        is nothing."""

        def changed(function: Function) -> Function:
            body = change(function)
            return function if body is function.body else replace(function, body=body)

        return self.map_functions(changed)

    def with_adts(self, adts: Mapping[str, AdtDef]) -> Module:
        """Return the module with data types replaced or added."""
        return replace(self, adts={**self.adts, **adts})


EMPTY = Module({}, {})
