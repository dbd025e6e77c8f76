"""Dataclasses whose methods are made at first use.

The standard library writes, compiles and runs the text of five methods of each dataclass where it
is defined. The package has some eight hundred of them, and a process makes instances of few: that
was a third of the time to start. `dataclass` here has the options that the package uses and the
same results; a method is made when it is first looked up, and what all classes can share is shared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, NoReturn, final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """Make a dataclass; options are those of `dataclasses.dataclass`, without `order` and
        `unsafe_hash`."""
        return (lambda cls: _make(cls, **options)) if cls is None else _make(cls, **options)


def _make(
    cls: type,
    *,
    eq: bool = True,
    repr: bool = True,  # noqa: A002  the name of the option in the standard library
    frozen: bool = False,
    **layout: bool,
) -> type:
    """Return the dataclass of a class; `layout` are the options that say which fields and slots it
    has, which the standard library reads."""
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else the signature of each class is made, to describe it
    has_base = any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:])
    # The standard library asks that bases are frozen too, and compiles two methods for that.
    asked = {"frozen": frozen and has_base, "init": False, "repr": False, "eq": False}
    made: Any = dataclasses.dataclass(**asked, **layout)(cls)
    made.__dataclass_params__.frozen = frozen
    methods: dict[str, Any] = {"__init__": _Unmade(made, "__init__", _init)}
    if repr:
        methods["__repr__"] = _repr
    if eq:
        methods["__eq__"] = _Unmade(made, "__eq__", _eq)
        methods["__hash__"] = _Unmade(made, "__hash__", _hash) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if frozen and layout.get("slots"):
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    own = vars(made)
    for name, method in methods.items():
        # Python itself puts None where a class has `__eq__` and no `__hash__`.
        if own.get(name) is None:
            setattr(made, name, method)
    return made


@final
class _Unmade:
    """A method that takes its own place in the class when it is first looked up."""

    def __init__(self, owner: type, name: str, write: Callable[[Any], _Text]) -> None:
        self._owner: Final = owner
        self._name: Final = name
        self._write: Final = write

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        cls, name = self._owner, self._name
        text, names = self._write(cls)
        names["__name__"] = cls.__module__  # a function has the module of its global names
        exec(compile(text, "<string>", "exec", dont_inherit=True), names)
        made = names[name]
        made.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, made)
        return made.__get__(instance, owner)


_Text = tuple[str, dict[str, Any]]
"""The text of a function, and the global names in it."""


def _init(cls: Any) -> _Text:
    """Return the text of `__init__`: a statement for each field."""
    known = dataclasses.fields(cls)
    plain = [field for field in known if field.init and not field.kw_only]
    named = [field for field in known if field.init and field.kw_only]
    parameters = [*map(_parameter, plain), *(["*"] if named else []), *map(_parameter, named)]
    names: dict[str, Any] = {"absent__": _ABSENT, "assign__": object.__setattr__}
    lines = [f"def __init__({', '.join(['self', *parameters])}) -> None:"]
    for field in known:
        names[f"type__{field.name}"] = field.type
        names[f"default__{field.name}"] = field.default
        names[f"make__{field.name}"] = field.default_factory
        lines += _assignment(cls, field, names)
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return "\n    ".join([*lines, "pass"]), names


def _parameter(field: dataclasses.Field[Any]) -> str:
    typed = f"{field.name}: type__{field.name}"
    if field.default is not dataclasses.MISSING:
        return f"{typed} = default__{field.name}"
    return typed if field.default_factory is dataclasses.MISSING else f"{typed} = absent__"


def _assignment(cls: Any, field: dataclasses.Field[Any], names: dict[str, Any]) -> tuple[str, ...]:
    """Return the statement that gives a field its value, if `__init__` does."""
    name, value = field.name, field.name
    if field.default_factory is not dataclasses.MISSING:
        made = f"make__{name}()"
        value = f"{made} if {name} is absent__ else {name}" if field.init else made
    elif not field.init and field.default is dataclasses.MISSING:
        return ()
    elif not field.init:
        value = f"default__{name}"
    if not cls.__dataclass_params__.frozen:
        return (f"self.{name} = {value}",)
    slot = getattr(cls, name, None)
    if not isinstance(slot, MemberDescriptorType):
        return (f"assign__(self, {name!r}, {value})",)
    names[f"assign__{name}"] = slot.__set__  # a third faster than `object.__setattr__`
    return (f"assign__{name}(self, {value})",)


def _eq(cls: Any) -> _Text:
    """Return the text of `__eq__`: instances of one class are compared as tuples of fields."""
    compared = [field.name for field in dataclasses.fields(cls) if field.compare]
    own, others = ("".join(f"{who}.{n}, " for n in compared) for who in ("self", "other"))
    return (
        "def __eq__(self, other):\n"
        "    if other.__class__ is not self.__class__:\n"
        "        return NotImplemented\n"
        f"    return ({own}) == ({others})"
    ), {}


def _hash(cls: Any) -> _Text:
    """Return the text of `__hash__`."""
    hashed = (f for f in dataclasses.fields(cls) if (f.compare if f.hash is None else f.hash))
    values = "".join(f"self.{field.name}, " for field in hashed)
    return f"def __hash__(self):\n    return hash(({values}))", {}


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """Return the fields, for `copy` and `pickle`: they cannot assign to those of frozen slots."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


@final
class _Absent:
    """The default of a parameter whose field has a `default_factory`."""

    def __repr__(self) -> str:
        return "<factory>"


_ABSENT: Final = _Absent()
