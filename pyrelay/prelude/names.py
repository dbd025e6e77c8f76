"""The Python names of the prelude: their meanings to the compiler, and their values in a script."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, TypeAlias, final

from ..dataclass import dataclass
from .library import LIST, NAT, OPTION, TREE, qualified
from .values import Cons, List, Nat, Nil, Option, Rose, Succ, Zero, some


@final
@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A function of the prelude, by its name in programs."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class LibraryConstructor:
    """A constructor of a data type of the prelude, with the names of its fields."""

    adt: str
    name: str
    fields: tuple[str, ...]


LibraryValue: TypeAlias = LibraryFunction | LibraryConstructor

CONSTRUCTORS: Final[dict[type, LibraryConstructor]] = {
    Cons: LibraryConstructor(LIST, "Cons", ("head", "tail")),
    Nil: LibraryConstructor(LIST, "Nil", ()),
    Rose: LibraryConstructor(TREE, "Rose", ("value", "children")),
    Zero: LibraryConstructor(NAT, "Zero", ()),
    Succ: LibraryConstructor(NAT, "Succ", ("less",)),
}
"""The classes that are constructors in programs."""

TYPES: Final[dict[type, str]] = {List: LIST, Option: OPTION, Rose: TREE, Nat: NAT}
"""The classes that name a data type of the prelude in annotations."""


def library_value(value: object) -> LibraryValue | None:
    """Return the prelude's meaning of a Python object; None if it has none."""
    if isinstance(value, type):
        return CONSTRUCTORS.get(value)
    found = getattr(value, "__relay__", None)
    return found if isinstance(found, LibraryFunction | LibraryConstructor) else None


@final
class OptionConstructor:
    """A constructor of the prelude's optional. In a script an optional is None or the value, and
    `Present` where that is None."""

    def __init__(self, constructor: LibraryConstructor) -> None:
        self.__relay__: Final = constructor
        self.__name__: str = constructor.name

    def __call__(self, *value: Any) -> Any:
        """Return the value, or None."""
        return some(value[0]) if self.__relay__.fields else None

    def __repr__(self) -> str:
        return f"<prelude.{self.__name__}>"


SOME: Final = LibraryConstructor(OPTION, "Some", ("value",))
NONE: Final = LibraryConstructor(OPTION, "None", ())


@final
class Function:
    """A function of the prelude: a name in `@relay` code, and called from a script a function on
    lists, tensors, numbers and relay functions."""

    def __init__(self, name: str, doc: str) -> None:
        self.__relay__: Final = LibraryFunction(qualified(name))
        self.__name__: str = name
        self.__doc__ = doc

    def __call__(self, *args: Any) -> Any:
        """Return the value at arguments, by the compiled program. Raises CheckError and
        RunError."""
        # The runtime lies above this layer and brings in torch.
        return import_module("pyrelay.runtime.texts.prelude").call(self.__relay__, args)

    def __repr__(self) -> str:
        return f"<prelude.{self.__name__}>"
