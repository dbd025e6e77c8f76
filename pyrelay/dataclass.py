"""Dataclasses that are made at first use.

The standard library looks at each field of a dataclass where it is defined, and writes, compiles
and runs the text of five methods. The package has some eight hundred of them, and a process makes
instances of few: that was a third of the time to start. `dataclass` here has the options that the
package uses and the same results, but only slots are made at once. Descriptions of fields and
methods are made when they are first looked up, and what all classes can share is shared.
"""

from __future__ import annotations

import dataclasses
from abc import update_abstractmethods
from collections.abc import Callable, Sequence
from functools import cache, partial
from reprlib import recursive_repr
from types import CodeType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, final, get_origin

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """Make a dataclass; options are those of `dataclasses.dataclass`, without `order` and
        `unsafe_hash`. No field is an `InitVar`."""
        return (lambda cls: _make(cls, **options)) if cls is None else _make(cls, **options)


_Fields = dict[str, dataclasses.Field[Any]]


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Any:
    """A dataclass of the standard library."""

    field: int


_KIND: Final[object] = getattr(dataclasses.fields(_Any)[0], "_field_type")  # noqa: B009  private
"""The mark of fields that are no `ClassVar` or `InitVar`."""


def _make(
    cls: type,
    *,
    eq: bool = True,
    repr: bool = True,  # noqa: A002  the name of the option in the standard library
    frozen: bool = False,
    slots: bool = False,
    weakref_slot: bool = False,
    kw_only: bool = False,
) -> type:
    """Return the dataclass of a class."""
    own = vars(cls)
    names = [n for n, ty in own.get("__annotations__", {}).items() if not _is_of_class(ty)]
    found = ((name, getattr(cls, name, _ABSENT)) for name in names)
    defaults = {n: v for n, v in found if v is not _ABSENT and type(v) is not MemberDescriptorType}
    members: dict[str, Any] = {
        "__doc__": cls.__name__,
        "__dataclass_fields__": _Unmade(partial(_fields, defaults=defaults, kw_only=kw_only)),
        "__dataclass_params__": _Unmade(partial(_params, frozen=frozen)),
        "__match_args__": _Unmade(_match_args),
        "__init__": _Unmade(partial(_init, frozen=frozen)),
    }
    if repr:
        members["__repr__"] = _repr
    if eq:
        members["__eq__"] = _Unmade(_eq)
        members["__hash__"] = _Unmade(_hash) if frozen else None
    if frozen:
        members |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if frozen and slots:
        members |= {"__getstate__": _state, "__setstate__": _set_state}
    # Python itself puts None where a class has `__eq__` and no `__hash__`, or no docstring.
    members = {name: member for name, member in members.items() if own.get(name) is None}
    if slots:
        return _with_slots(cls, [*names, *(["__weakref__"] if weakref_slot else [])], members)
    for name, default in defaults.items():
        if isinstance(default, dataclasses.Field):
            _set_default(cls, name, default)
    for name, member in members.items():
        setattr(cls, name, member)
        if isinstance(member, _Unmade):
            member.__set_name__(cls, name)
    return update_abstractmethods(cls)


def _is_of_class(ty: Any) -> bool:
    """Return whether the annotation of a name in a class makes it a variable of the class."""
    if isinstance(ty, str):
        return ty.startswith(("ClassVar", "typing.ClassVar"))
    return ty is ClassVar or get_origin(ty) is ClassVar


def _set_default(cls: type, name: str, field: dataclasses.Field[Any]) -> None:
    if field.default is dataclasses.MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, field.default)


def _with_slots(cls: type, names: Sequence[str], members: dict[str, Any]) -> type:
    """Return a class anew, with slots of some names and with other members."""
    inherited = {slot for base in cls.__mro__[1:-1] for slot in _slots(base)}
    namespace = {**vars(cls), **members, "__qualname__": cls.__qualname__}
    for name in (*names, "__dict__", "__weakref__"):
        namespace.pop(name, None)
    namespace["__slots__"] = tuple(name for name in names if name not in inherited)
    return type(cls)(cls.__name__, cls.__bases__, namespace)


def _slots(cls: type) -> Sequence[str]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


@final
class _Unmade:
    """A member of a class that takes its own place when it is first looked up."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make: Final = make
        self._owner: type = object
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = self._make(self._owner)
        setattr(self._owner, self._name, made)
        bind = getattr(made, "__get__", None)
        return made if bind is None else bind(instance, owner)


def _fields(cls: Any, defaults: dict[str, Any], *, kw_only: bool) -> _Fields:
    """Return the fields of a dataclass by name, with those of its bases."""
    found: _Fields = {}
    for base in cls.__mro__[:0:-1]:
        found |= getattr(base, "__dataclass_fields__", {})
    for name, ty in vars(cls).get("__annotations__", {}).items():
        if _is_of_class(ty):
            continue
        default = defaults.get(name, dataclasses.MISSING)
        is_field = isinstance(default, dataclasses.Field)
        field: Any = default if is_field else dataclasses.field(default=default)
        field.name, field.type, field._field_type = name, ty, _KIND  # noqa: SLF001  `fields` asks for it
        if field.kw_only is dataclasses.MISSING:
            field.kw_only = kw_only
        found[name] = field
    return found


def _params(cls: type, *, frozen: bool) -> Any:
    nothing = {"init": False, "repr": False, "eq": False, "match_args": False}
    made: Any = dataclasses.dataclass(**nothing, frozen=frozen)(type(cls.__name__, (), {}))
    return made.__dataclass_params__


def _match_args(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls) if f.init and not f.kw_only)


def _function(cls: Any, name: str, text: str, names: dict[str, Any]) -> Any:
    """Return the method of a class that a text defines; `names` are the global names in it. In the
    text fields have numbers (`_numbered`), so that classes share what is compiled."""
    names["__name__"] = cls.__module__  # a function has the module of its global names
    exec(_compiled(text), names)
    made = names[name]
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    real = {number: field.name for field, number in _numbered(cls)}
    code = made.__code__
    made.__code__ = code.replace(
        co_names=tuple([real.get(n, n) for n in code.co_names]),
        co_varnames=tuple([real.get(n, n) for n in code.co_varnames]),
    )
    if made.__kwdefaults__:
        made.__kwdefaults__ = {real[n]: value for n, value in made.__kwdefaults__.items()}
    return made


@cache
def _compiled(text: str) -> CodeType:
    return compile(text, "<string>", "exec", dont_inherit=True)


def _numbered(cls: Any) -> list[tuple[dataclasses.Field[Any], str]]:
    """Return the fields of a class with their names in texts."""
    return [(field, f"field__{n}") for n, field in enumerate(dataclasses.fields(cls))]


def _init(cls: Any, *, frozen: bool) -> Any:
    """Return `__init__`: a statement for each field."""
    known = _numbered(cls)
    plain = [_parameter(f, n) for f, n in known if f.init and not f.kw_only]
    named = [_parameter(f, n) for f, n in known if f.init and f.kw_only]
    parameters = ["self", *plain, *(["*"] if named else []), *named]
    names: dict[str, Any] = {"absent__": _ABSENT, "assign__": object.__setattr__}
    lines = [f"def __init__({', '.join(parameters)}):"]
    for field, name in known:
        names[f"default__{name}"] = field.default
        names[f"make__{name}"] = field.default_factory
        lines += _assignment(cls, field, name, names, frozen=frozen)
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    made = _function(cls, "__init__", "\n    ".join([*lines, "pass"]), names)
    made.__annotations__ = {f.name: f.type for f, _ in known if f.init} | {"return": None}
    return made


def _parameter(field: dataclasses.Field[Any], name: str) -> str:
    if field.default is not dataclasses.MISSING:
        return f"{name}=default__{name}"
    return name if field.default_factory is dataclasses.MISSING else f"{name}=absent__"


def _assignment(
    cls: Any, field: dataclasses.Field[Any], name: str, names: dict[str, Any], *, frozen: bool
) -> tuple[str, ...]:
    """Return the statement that gives a field its value, if `__init__` does."""
    value = name
    if field.default_factory is not dataclasses.MISSING:
        made = f"make__{name}()"
        value = f"{made} if {name} is absent__ else {name}" if field.init else made
    elif not field.init and field.default is dataclasses.MISSING:
        return ()
    elif not field.init:
        value = f"default__{name}"
    if not frozen:
        return (f"self.{name} = {value}",)
    slot = getattr(cls, field.name, None)
    if not isinstance(slot, MemberDescriptorType):
        return (f"assign__(self, {field.name!r}, {value})",)
    names[f"assign__{name}"] = slot.__set__  # a third faster than `object.__setattr__`
    return (f"assign__{name}(self, {value})",)


def _eq(cls: Any) -> Any:
    """Return `__eq__`: instances of one class are compared as tuples of fields."""
    compared = [name for field, name in _numbered(cls) if field.compare]
    own, others = ("".join(f"{who}.{n}, " for n in compared) for who in ("self", "other"))
    text = (
        "def __eq__(self, other):\n"
        "    if other.__class__ is not self.__class__:\n"
        "        return NotImplemented\n"
        f"    return ({own}) == ({others})"
    )
    return _function(cls, "__eq__", text, {})


def _hash(cls: Any) -> Any:
    """Return `__hash__`."""
    hashed = (n for f, n in _numbered(cls) if (f.compare if f.hash is None else f.hash))
    values = "".join(f"self.{name}, " for name in hashed)
    return _function(cls, "__hash__", f"def __hash__(self):\n    return hash(({values}))", {})


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
